import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { WorkerEvent } from '@baton/client'
import { onTestFinished } from 'vitest'

const pathOf = (name: string) => fileURLToPath(new URL(`./${name}`, import.meta.url))

/** The worker program in its own process, and its events so far. */
export class ProgramProcess {
  readonly events: WorkerEvent[] = []
  readonly #child: ChildProcess

  private constructor(child: ChildProcess) {
    this.#child = child
  }

  static start(url: string, environment: Record<string, string> = {}, preload?: string): ProgramProcess {
    const child = spawn(
      process.execPath,
      [
        '--conditions=baton-source',
        ...(preload === undefined ? [] : ['--import', pathOf(preload)]),
        pathOf('worker-program.ts'),
      ],
      { env: { ...process.env, ...environment, BATON_URL: url }, stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const program = new ProgramProcess(child)
    createInterface({ input: child.stdout }).on('line', (line) => program.events.push(JSON.parse(line)))
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
    return program
  }

  eventsOf<K extends WorkerEvent['kind']>(kind: K): Extract<WorkerEvent, { kind: K }>[] {
    return this.events.filter((event): event is Extract<WorkerEvent, { kind: K }> => event.kind === kind)
  }

  send(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit')
    this.send('SIGTERM')
    await exited
  }
}
