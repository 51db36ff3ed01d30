import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { freePort } from '../../../bench/harness/clean-up.ts'
import { errorIn, type LoggedError } from '../../chaos/support/log-checks.ts'
import { spawnService } from '../../support/spawn-service.ts'

/** A Baton node in its own process, which keeps its address when it is restarted. */
export class NodeProcess {
  readonly name: string
  readonly url: string
  readonly #args: readonly string[]
  readonly #environment: Readonly<Record<string, string>>
  #child: ChildProcess | undefined
  log = ''
  readonly errors: LoggedError[] = []
  /** It joins and leaves, and is not running now. */
  isAway = false
  /** How often it has ended without being killed. */
  ends = 0

  private constructor(
    name: string,
    port: number,
    args: readonly string[],
    environment: Readonly<Record<string, string>>,
  ) {
    this.#environment = environment
    this.name = name
    this.url = `http://127.0.0.1:${port}`
    this.#args = ['--port', String(port), '--instance-id', name, ...args]
  }

  static async start(name: string, args: readonly string[]): Promise<NodeProcess> {
    const node = await NodeProcess.prepare(name, args)
    await node.start()
    return node
  }

  /** For a node that is started later. */
  static async prepare(
    name: string,
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
  ): Promise<NodeProcess> {
    return new NodeProcess(name, await freePort(), args, environment)
  }

  async start(): Promise<void> {
    const child = spawnService(this.#args, { environment: this.#environment })
    this.#child = child
    const exited = once(child, 'exit')
    const listening = new Promise<void>((resolve) => {
      child.stdout?.on('data', (chunk: Buffer) => {
        if (chunk.toString().includes('listening')) resolve()
      })
    })
    if (child.stderr !== null)
      createInterface({ input: child.stderr }).on('line', (line) => {
        this.log = `${this.log}${line}\n`.slice(-50_000)
        const error = errorIn(line, Date.now())
        if (error !== undefined) this.errors.push(error)
      })
    await Promise.race([
      listening,
      exited.then(() => {
        if (this.#child === child) throw new Error(`${this.name} ended: ${this.log}`)
      }),
    ])
    exited.then(() => {
      if (this.#child === child) this.ends += 1
    })
  }

  /**
   * A database that is just coming back may refuse the start; as a supervisor would, this starts the node
   * again.
   */
  async startUntilItRuns(): Promise<void> {
    while (true) {
      try {
        return await this.start()
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** Stops it gracefully. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM')
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
}
