import type { HandOffAnswers } from '../../../handoff/store.ts'
import type { Shrinking } from '../queues/shrinking.ts'
import type { Filling } from '../windows/filling.ts'

/** A plain hand-off is over in some milliseconds, and one that takes longer is stuck behind a lock or a dead connection. */
const PATIENCE_MILLIS = 250

/**
 * Plain hand-offs that are done by transactions at the moment. Under load there is no moment without any, nor without windows
 * that are filled and sets that shrink behind them. So the beginning of a stint waits for those that are under way, and those
 * that come wait for the beginning. One that is stuck must not hold up the others.
 */
export class PlainUnderWay {
  readonly #filling: Filling
  readonly #shrinking: Shrinking
  readonly #underWay = new Set<Promise<HandOffAnswers>>()
  #hurry: (() => void) | undefined

  constructor({ filling, shrinking }: { readonly filling: Filling; readonly shrinking: Shrinking }) {
    this.#filling = filling
    this.#shrinking = shrinking
  }

  get size(): number {
    return this.#underWay.size
  }

  track(handOff: Promise<HandOffAnswers>): Promise<HandOffAnswers> {
    this.#underWay.add(handOff)
    return handOff.finally(() => this.#underWay.delete(handOff))
  }

  /** For those that must not be kept waiting. */
  hurry(): void {
    this.#hurry?.()
  }

  async wait(): Promise<'over' | 'stuck' | 'hurried'> {
    const { promise, resolve } = Promise.withResolvers<'over' | 'stuck' | 'hurried'>()
    const timer = setTimeout(() => resolve('stuck'), PATIENCE_MILLIS)
    this.#hurry = () => resolve('hurried')
    try {
      return await Promise.race([promise, this.#over()])
    } finally {
      clearTimeout(timer)
      this.#hurry = undefined
    }
  }

  async #over(): Promise<'over'> {
    await Promise.allSettled(this.#underWay)
    await Promise.all([this.#filling.idle(), this.#shrinking.idle()])
    return 'over'
  }
}
