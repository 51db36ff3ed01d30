import { ServiceProcess } from './service-process.ts'
import { testFolder } from './test-folder.ts'

/** A service in its own process with its own data, for tests that stop it and start it again. */
export class RestartableService {
  readonly #data: string
  #flags: readonly string[]
  #running: ServiceProcess

  private constructor(data: string, flags: readonly string[], running: ServiceProcess) {
    this.#data = data
    this.#flags = flags
    this.#running = running
  }

  /** Runs for the duration of a test. */
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

  /** Kills it without a graceful shutdown. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** Stops it gracefully. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM')
  }

  /** Starts it on the same port and data, optionally with other flags. */
  async startAgain(...flags: string[]): Promise<void> {
    if (flags.length > 0) this.#flags = flags
    this.#running = await ServiceProcess.started(['--port', String(this.port), ...this.#flags], this.#data)
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    this.#running.signal(signal)
    await this.#running.exited
  }
}
