import { lowerBound } from './lower-bound.ts'

/** A place in the list of a level. */
export interface Arrival<Of> {
  readonly of: Of
  readonly level: number
  /** Numbers only grow. */
  readonly number: number
}

interface Arriving<Of> {
  arrival: Arrival<Of> | null
}

/** Of one level, by number. Those that have left are skipped, and removed when they are most of the list. */
class ArrivalsOfLevel<Of extends Arriving<Of>> {
  readonly level: number
  #list: Arrival<Of>[] = []
  #left = 0

  constructor(level: number) {
    this.level = level
  }

  get isEmpty(): boolean {
    return this.#list.length === this.#left
  }

  add(arrival: Arrival<Of>): void {
    this.#list.push(arrival)
  }

  /** Call it after one has left. */
  left(): void {
    const list = this.#list
    this.#left += 1
    if (2 * this.#left < list.length || list.length < FEWEST_KEPT) return
    this.#list = list.filter(isThere)
    this.#left = 0
  }

  /** The first with a larger number. */
  after(number: number): Arrival<Of> | undefined {
    const list = this.#list
    if ((list.at(-1)?.number ?? 0) <= number) return undefined
    let index = lowerBound(list, number + 1, byNumber)
    while (index < list.length && !isThere(list[index] as Arrival<Of>)) index += 1
    return list[index]
  }
}

const FEWEST_KEPT = 16

const byNumber = (arrival: { readonly number: number }, number: number): number => arrival.number - number

const byLevel = (arrivals: { readonly level: number }, level: number): number => arrivals.level - level

const isThere = <Of extends Arriving<Of>>(arrival: Arrival<Of>): boolean => arrival.of.arrival === arrival

/** What waits of a table, by level, in the order it came. A filter reads it only as far as it needs. */
export class Arrivals<Of extends Arriving<Of>> {
  /** Those that have some, by level. */
  readonly #levels: ArrivalsOfLevel<Of>[] = []
  #last = 0

  put(of: Of, level: number): void {
    this.remove(of)
    let ofLevel = this.from(level)
    if (ofLevel?.level !== level) {
      ofLevel = new ArrivalsOfLevel<Of>(level)
      this.#levels.splice(this.#indexOf(level), 0, ofLevel)
    }
    this.#last += 1
    of.arrival = { of, level, number: this.#last }
    ofLevel.add(of.arrival)
  }

  remove(of: Of): void {
    if (of.arrival === null) return
    const index = this.#indexOf(of.arrival.level)
    const ofLevel = this.#levels[index] as ArrivalsOfLevel<Of>
    of.arrival = null
    ofLevel.left()
    if (ofLevel.isEmpty) this.#levels.splice(index, 1)
  }

  /** The lowest level that has some, of this level and those above it. */
  from(level: number): ArrivalsOfLevel<Of> | undefined {
    return this.#levels[this.#indexOf(level)]
  }

  /** The first level that is not lower. */
  #indexOf(level: number): number {
    return lowerBound(this.#levels, level, byLevel)
  }
}
