import { Dice } from '../../../packages/server/test/support/mutation.ts'

/**
 * What is left to chance in a run. Everyone who takes part draws from a sequence of its own, so that the seed decides
 * what each of them does, although not which of them is faster.
 */
export class Chance extends Dice {
  readonly #seed: number

  constructor(seed: number) {
    super(seed)
    this.#seed = seed
  }

  /** A sequence for somebody else. */
  for(name: string): Chance {
    let seed = this.#seed
    for (const letter of name) seed = (Math.imul(seed, 31) + letter.charCodeAt(0)) >>> 0
    return new Chance(Math.imul(seed, 0x9e3779b1) >>> 0)
  }

  happens(share: number): boolean {
    return this.below(1_000_000) < share * 1_000_000
  }

  /** Both included. */
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

/** The same for everyone, so that a change is not blamed for a storm that others were spared; `npm run chaos` looks further. */
export const seed = Number(process.env['CHAOS_SEED'] ?? 1)
