import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { freePort } from '../../../bench/harness/free-port.ts'
import { spawnService } from '../../support/spawn-service.ts'

/** A Baton node as a process of its own, which keeps its address when it is started again. */
export class NodeProcess {
  readonly name: string
  readonly url: string
  readonly #args: readonly string[]
  #child: ChildProcess | undefined
  log = ''
  /** How often it has ended although nobody killed it. */
  ends = 0

  private constructor(name: string, port: number, args: readonly string[]) {
    this.name = name
    this.url = `http://127.0.0.1:${port}`
    this.#args = ['--port', String(port), '--instance-id', name, ...args]
  }

  static async start(name: string, args: readonly string[]): Promise<NodeProcess> {
    const node = await NodeProcess.prepare(name, args)
    await node.start()
    return node
  }

  /** For one that is started later. */
  static async prepare(name: string, args: readonly string[]): Promise<NodeProcess> {
    return new NodeProcess(name, await freePort(), args)
  }

  async start(): Promise<void> {
    const child = spawnService(this.#args)
    this.#child = child
    const exited = once(child, 'exit')
    const listening = new Promise<void>((resolve) => {
      child.stdout?.on('data', (chunk: Buffer) => {
        if (chunk.toString().includes('listening')) resolve()
      })
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      this.log = (this.log + chunk.toString()).slice(-50_000)
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

  /** A database that is just coming back may refuse the start; whoever supervises a node starts it again. */
  async startUntilItRuns(): Promise<void> {
    while (true) {
      try {
        return await this.start()
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  async kill(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
}
