import { Distribution } from '../../handoff/counts/distribution.ts'

const SAMPLE_MILLIS = 100
/** Timers are good to a millisecond, and a store on the event loop holds it for some. */
const DELAY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** How the process is. It looks at the clock ten times a second; the rest Node counts anyway. */
export class ProcessHealth {
  /** How late a timer fired: what a request that arrived just then had to wait before anybody looked at it. */
  readonly eventLoopDelay = new Distribution(DELAY_SECONDS)
  #dueAt = performance.now() + SAMPLE_MILLIS
  readonly #timer = setInterval(() => this.#sample(), SAMPLE_MILLIS).unref()
  readonly #onSample: (lateMillis: number) => void

  constructor(onSample: (lateMillis: number) => void = () => {}) {
    this.#onSample = onSample
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #sample(): void {
    const now = performance.now()
    const lateMillis = Math.max(0, now - this.#dueAt)
    this.eventLoopDelay.add(lateMillis / 1000)
    this.#onSample(lateMillis)
    this.#dueAt = now + SAMPLE_MILLIS
  }
}
