/** What to call when something ends, by what ends. */
export class EndCallbacks<Key> {
  readonly #byKey = new Map<Key, Set<() => void>>()

  /** The returned function cancels that. */
  add(key: Key, end: () => void): () => void {
    const ends = this.#byKey.get(key) ?? new Set()
    this.#byKey.set(key, ends)
    ends.add(end)
    return () => {
      ends.delete(end)
      if (ends.size === 0 && this.#byKey.get(key) === ends) this.#byKey.delete(key)
    }
  }

  ended(key: Key): void {
    const ends = this.#byKey.get(key) ?? []
    this.#byKey.delete(key)
    for (const end of ends) end()
  }
}
