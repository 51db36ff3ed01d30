import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Probe, ProbeTarget } from './prober-thread.ts'

/**
 * Requests `/livez` over a new connection each time, as a monitor does. It runs on its own thread: this
 * process is busy with the floods, and would measure itself.
 */
export class Prober {
  readonly #target: ProbeTarget
  #millis: number[] = []
  readonly findings: string[] = []
  #thread: Worker | undefined

  constructor(
    port: number,
    { everyMillis = 200, address, isSecure = false }: Partial<Omit<ProbeTarget, 'port'>> = {},
  ) {
    this.#target = { port, everyMillis, address, isSecure }
  }

  /** Probes until it is stopped. */
  async run(): Promise<void> {
    const thread = new Worker(new URL('./prober-thread.ts', import.meta.url), {
      workerData: this.#target,
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

  /** A summary covers only later probes from here on. */
  forget(): void {
    this.#millis = []
  }

  summary() {
    const sorted = this.#millis.toSorted((a, b) => a - b)
    const at = (share: number) => Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0)
    return { count: sorted.length, medianMillis: at(0.5), p99Millis: at(0.99), slowestMillis: at(1) }
  }
}
