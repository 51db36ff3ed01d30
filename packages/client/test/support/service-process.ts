import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const main = fileURLToPath(new URL('../../../server/src/main.ts', import.meta.url))

/** A service in a process of its own, on data of its own, for tests that take it away. */
export class ServiceProcess {
  readonly #data: string
  #flags: readonly string[]
  #child: ChildProcess | undefined
  #url = ''

  private constructor(data: string, flags: readonly string[]) {
    this.#data = data
    this.#flags = flags
  }

  /** For the length of a test. */
  static async start(...flags: string[]): Promise<ServiceProcess> {
    const data = await mkdtemp(join(tmpdir(), 'baton-service-'))
    const service = new ServiceProcess(data, flags)
    onTestFinished(async () => {
      await service.kill()
      await rm(data, { recursive: true, force: true })
    })
    await service.#start('0')
    return service
  }

  get url(): string {
    return this.#url
  }

  get port(): number {
    return Number(new URL(this.#url).port)
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
    await this.#start(String(this.port))
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }

  async #start(port: string): Promise<void> {
    const fixed = ['--port', port, '--data', this.#data, '--log-level', 'warn']
    const child = spawn(process.execPath, ['--conditions=baton-source', main, ...fixed, ...this.#flags], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#child = child
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /^Baton listening on (\S+)$/.exec(line)?.[1]
      if (url === undefined) continue
      this.#url = url
      child.stdout.resume()
      return
    }
    throw new Error('the service ended before it listened')
  }
}
