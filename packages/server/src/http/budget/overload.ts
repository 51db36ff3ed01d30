/** What is given up first when the node is behind comes first. */
export const sheddingOrder = ['call-back', 'view', 'pull', 'urgent'] as const
export type Urgency = (typeof sheddingOrder)[number]

/** The delay, in times of what counts as overload, from which each is refused. */
const refusedFrom: Readonly<Record<Urgency, number>> = { 'call-back': 1, view: 2, pull: 4, urgent: 8 }
/** One long turn of the loop is no overload, nor is a process that was stopped for a while. */
const LOOKS = 3

/** Whether the event loop is so late that requests must be refused, and which. */
export class Overload {
  readonly #thresholdMillis: number
  readonly #late: number[] = Array(LOOKS).fill(0)
  #times = 0

  constructor(thresholdMillis: number) {
    this.#thresholdMillis = thresholdMillis
  }

  /** How late the loop was at a look; looks come one after the other. */
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
