/**
 * One claim serves many pulls: candidates come in the order of the hand-off, pulls in the order of
 * their arrival, and each pull takes from the front until its count or its record budget is met.
 */
export interface Appetite {
  /** At most so many partitions. */
  readonly batch: number
  /** Stop once so many records are met; the first partition is always given. */
  readonly records: number | null
}

export class Portion<Candidate extends { readonly recordCount: number }> {
  readonly taken: Candidate[] = []
  #records = 0
  readonly #appetite: Appetite

  constructor(appetite: Appetite) {
    this.#appetite = appetite
  }

  get isFull(): boolean {
    const { batch, records } = this.#appetite
    if (this.taken.length >= batch) return true
    return records !== null && this.taken.length > 0 && this.#records >= records
  }

  get room(): number {
    return this.isFull ? 0 : this.#appetite.batch - this.taken.length
  }

  take(candidate: Candidate): void {
    this.taken.push(candidate)
    this.#records += candidate.recordCount
  }

  copy(): Portion<Candidate> {
    const copy = new Portion<Candidate>(this.#appetite)
    for (const candidate of this.taken) copy.take(candidate)
    return copy
  }
}

/** Returns how many candidates were taken; those after them stay ready. */
export function share<Candidate extends { readonly recordCount: number }>(
  candidates: readonly Candidate[],
  portions: readonly Portion<Candidate>[],
): number {
  let taken = 0
  for (const portion of portions) {
    while (!portion.isFull) {
      const candidate = candidates[taken]
      if (candidate === undefined) return taken
      portion.take(candidate)
      taken += 1
    }
  }
  return taken
}

/** How many candidates would be taken, and by whom is left open: nobody takes any yet. */
export function wouldTake<Candidate extends { readonly recordCount: number }>(
  candidates: readonly { readonly recordCount: number }[],
  portions: readonly Portion<Candidate>[],
): number {
  return share(
    candidates,
    portions.map((portion): Portion<{ readonly recordCount: number }> => portion.copy()),
  )
}
