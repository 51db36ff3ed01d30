import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** A worker in its own process. */
export class WorkerProcess {
  readonly #child: ChildProcess
  readonly #hangs = Promise.withResolvers<void>()
  readonly #continued = Promise.withResolvers<void>()
  /** The time in handlers, in seconds. */
  busy = 0

  private constructor(command: string, args: readonly string[], environment: Record<string, string>) {
    const env = { ...process.env, PYTHONPATH: here('../../clients/python/src'), ...environment }
    this.#child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
    this.#child.once('exit', (code, signal) => {
      const ended = new Error(`a worker ended early: ${signal ?? code}`)
      this.#hangs.reject(ended)
      this.#continued.reject(ended)
    })
    // One that is stopped orderly has nobody who waits for these.
    for (const { promise } of [this.#hangs, this.#continued]) promise.catch(() => {})
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const [kind, detail] = line.split(' ')
      if (kind === 'hangs') this.#hangs.resolve()
      if (kind === 'continued') this.#continued.resolve()
      if (kind === 'settled') this.busy += Number(detail)
    })
  }

  static typescript(name: string, environment: Record<string, string>): WorkerProcess {
    return new WorkerProcess(
      process.execPath,
      ['--conditions=baton-source', here('worker.ts'), name],
      environment,
    )
  }

  static python(program: string, name: string, environment: Record<string, string>): WorkerProcess {
    return new WorkerProcess(program, [here('worker.py'), name], environment)
  }

  /** Sends a signal once a handler hangs. */
  async whenItHangs(signal: NodeJS.Signals): Promise<void> {
    await this.#hangs.promise
    this.#child.kill(signal)
  }

  /** Lets it go on after a stop, until a handler that hung has tried to write. */
  async continue(): Promise<void> {
    this.#child.kill('SIGCONT')
    await this.#continued.promise
  }

  async stop(): Promise<void> {
    const { exitCode, signalCode } = this.#child
    const ended = exitCode === null && signalCode === null ? once(this.#child, 'exit') : undefined
    this.#child.kill('SIGTERM')
    await ended
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}
