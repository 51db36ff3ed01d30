import type { BoundsMet } from './bounds.ts'
import type { AdmissionLimits } from './limits.ts'

type Limits = Pick<AdmissionLimits, 'waitingPulls' | 'waitingPullsPerCaller'>

/** Bounds the pulls that wait for work: in all, and those of one caller, so that one cannot keep the others from waiting. */
export class WaitingShare {
  readonly #limits: Limits
  readonly #waiting: () => number
  readonly #met: BoundsMet
  readonly #byCaller = new Map<string, number>()

  /** `waiting` tells how many pulls wait on this node. */
  constructor(limits: Limits, waiting: () => number, met: BoundsMet) {
    this.#limits = limits
    this.#waiting = waiting
    this.#met = met
  }

  /** Has a pull wait for as long as it asked to, or not at all where too many wait already. */
  within<Result>(
    waitMillis: number,
    callerOf: () => string,
    pull: (waitMillis: number) => Promise<Result>,
  ): Promise<Result> {
    if (waitMillis <= 0) return pull(0)
    const caller = callerOf()
    const count = this.#byCaller.get(caller) ?? 0
    const bound = this.#boundFor(count)
    if (bound !== undefined) {
      this.#met.met(bound)
      return pull(0)
    }
    this.#byCaller.set(caller, count + 1)
    return pull(waitMillis).finally(() => this.#leave(caller))
  }

  #boundFor(ofCaller: number): 'caller-waiting-pulls' | 'waiting-pulls' | undefined {
    if (ofCaller >= this.#limits.waitingPullsPerCaller) return 'caller-waiting-pulls'
    return this.#waiting() >= this.#limits.waitingPulls ? 'waiting-pulls' : undefined
  }

  #leave(caller: string): void {
    const left = (this.#byCaller.get(caller) ?? 1) - 1
    if (left === 0) this.#byCaller.delete(caller)
    else this.#byCaller.set(caller, left)
  }
}
