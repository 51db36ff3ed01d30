import { ServiceProcess } from './service-process.ts'
import { testFolder } from './test-folder.ts'

/** A service in a process of its own, on data of its own, for tests that take it away and bring it back. */
export class RestartableService {
  readonly #data: string
  #flags: readonly string[]
  #running: ServiceProcess

  private constructor(data: string, flags: readonly string[], running: ServiceProcess) {
    this.#data = data
    this.#flags = flags
    this.#running = running
  }

  /** For the length of a test. */
  static async start(...flags: string[]): Promise<RestartableService> {
    const data = await testFolder()
    return new RestartableService(data, flags, await ServiceProcess.started(flags, data))
  }

  get url(): string {
    return this.#running.url
  }

  get port(): number {
    return this.#running.port
  }

  /** Without a chance to say goodbye. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** The orderly way. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM')
  }

  /** On the same port and the same data; with other flags if some are given. */
  async startAgain(...flags: string[]): Promise<void> {
    if (flags.length > 0) this.#flags = flags
    this.#running = await ServiceProcess.started(['--port', String(this.port), ...this.#flags], this.#data)
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    this.#running.signal(signal)
    await this.#running.exited
  }
}
