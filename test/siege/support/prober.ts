import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Probe } from './prober-thread.ts'

/**
 * Asks whether the service lives, over a new connection each time, as whoever runs it does. On a thread of its own: this
 * process is busy with the floods, and would measure itself.
 */
export class Prober {
  readonly #port: number
  readonly #millis: number[] = []
  readonly findings: string[] = []
  #thread: Worker | undefined

  constructor(port: number) {
    this.#port = port
  }

  /** Until it is stopped. */
  async run(): Promise<void> {
    const thread = new Worker(new URL('./prober-thread.ts', import.meta.url), {
      workerData: { port: this.#port },
    })
    this.#thread = thread
    thread.on('message', ({ millis, fault }: Probe) => {
      this.#millis.push(millis)
      if (fault !== undefined) this.findings.push(`/livez was answered ${fault}`)
    })
    await once(thread, 'exit')
  }

  stop(): void {
    this.#thread?.postMessage('stop')
  }

  summary() {
    const sorted = this.#millis.toSorted((a, b) => a - b)
    const at = (share: number) => Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0)
    return { count: sorted.length, medianMillis: at(0.5), p99Millis: at(0.99), slowestMillis: at(1) }
  }
}
