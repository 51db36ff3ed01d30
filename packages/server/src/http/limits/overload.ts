import type { Urgency } from '../admission/access.ts'

/** The event loop delay from which each kind is refused, as a multiple of the threshold. */
const refusedFrom: Readonly<Record<Urgency, number>> = { 'call-back': 1, view: 2, pull: 4, urgent: 8 }
/** So many late samples in a row are an overload. One slow iteration, or a suspended process, is not. */
const LOOKS = 3

/** Decides from the event loop delay which requests are refused. */
export class Overload {
  readonly #thresholdMillis: number
  readonly #late: number[] = Array(LOOKS).fill(0)
  #times = 0

  constructor(thresholdMillis: number) {
    this.#thresholdMillis = thresholdMillis
  }

  /** Records a sample of the event loop delay. */
  note(lateMillis: number): void {
    this.#late.shift()
    this.#late.push(lateMillis)
    this.#times = Math.min(...this.#late) / this.#thresholdMillis
  }

  get isBehind(): boolean {
    return this.#times >= 1
  }

  refuses(urgency: Urgency): boolean {
    return this.#times >= refusedFrom[urgency]
  }
}
