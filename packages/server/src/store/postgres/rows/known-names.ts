/**
 * What was looked up, for a while. When there is much of it, what nobody asks for goes, and never what was asked for
 * since the last time: who has made sure that something is known may rely on it until its request is answered.
 */
export class KnownNames<Name, Known> {
  #recent = new Map<Name, Known>()
  #before = new Map<Name, Known>()

  get(name: Name): Known | undefined {
    const recent = this.#recent.get(name)
    if (recent !== undefined) return recent
    const known = this.#before.get(name)
    if (known !== undefined) this.#recent.set(name, known)
    return known
  }

  has(name: Name): boolean {
    return this.get(name) !== undefined
  }

  set(name: Name, known: Known): void {
    this.#recent.set(name, known)
  }

  get recent(): number {
    return this.#recent.size
  }

  age(): void {
    this.#before = this.#recent
    this.#recent = new Map()
  }
}
