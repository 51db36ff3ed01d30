import { Dice } from '../../../packages/server/test/support/mutation.ts'

/**
 * The random choices of a run. Each participant draws from its own sequence, so that the seed determines what
 * each of them does, although not their timing.
 */
export class Chance extends Dice {
  readonly #seed: number

  constructor(seed: number) {
    super(seed)
    this.#seed = seed
  }

  /** A separate sequence for another participant. */
  for(name: string): Chance {
    let seed = this.#seed
    for (const letter of name) seed = (Math.imul(seed, 31) + letter.charCodeAt(0)) >>> 0
    return new Chance(Math.imul(seed, 0x9e3779b1) >>> 0)
  }

  happens(share: number): boolean {
    return this.below(1_000_000) < share * 1_000_000
  }

  /** Both bounds are inclusive. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }

  shuffled<Item>(items: readonly Item[]): Item[] {
    return items
      .map((item) => ({ item, place: this.below(2 ** 32) }))
      .toSorted((a, b) => a.place - b.place)
      .map(({ item }) => item)
  }
}

/**
 * The same seed for all runs of the suite, so that a change is not blamed for a random failure; `npm run
 * chaos` uses other seeds.
 */
export const seed = Number(process.env['CHAOS_SEED'] ?? 1)
