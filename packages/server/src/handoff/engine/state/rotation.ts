import { costOf } from '../../rules/fair-order.ts'

/** The maximum number of filters whose rotation is kept. A dropped rotation starts over with equal shares. */
const MOST_ROTATIONS = 1000

/**
 * Start-time fair queuing between the tables or tasks that a pull names: of those with work on the level, the
 * next is the table or task that got the fewest records from pulls with the same filter. In memory only: a
 * restart resets all shares.
 */
export class Rotation {
  readonly #tags = new Map<string, number>()
  #virtual = 0

  /** Returns the member whose turn it is. If equal, the first named. */
  next<Member extends { readonly name: string }>(members: readonly Member[]): Member | undefined {
    let first: Member | undefined
    for (const member of members)
      if (first === undefined || this.#start(member.name) < this.#start(first.name)) first = member
    return first
  }

  charge(name: string, recordCount: number, weight: number): void {
    const start = this.#start(name)
    this.#virtual = start
    this.#tags.set(name, start + costOf(recordCount, weight))
  }

  #start(name: string): number {
    return Math.max(this.#tags.get(name) ?? 0, this.#virtual)
  }
}

export class Rotations {
  readonly #rotations = new Map<string, Rotation>()

  of(filter: string): Rotation {
    const rotation = this.#rotations.get(filter) ?? new Rotation()
    this.#rotations.delete(filter)
    this.#rotations.set(filter, rotation)
    if (this.#rotations.size > MOST_ROTATIONS) {
      const [oldest] = this.#rotations.keys()
      if (oldest !== undefined) this.#rotations.delete(oldest)
    }
    return rotation
  }
}
