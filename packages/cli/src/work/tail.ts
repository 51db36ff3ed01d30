/** The last bytes of a stream. */
export class Tail {
  readonly #size: number
  #kept = Buffer.alloc(0)
  #isCut = false

  constructor(size: number) {
    this.#size = size
  }

  add(bytes: Buffer): void {
    const all = Buffer.concat([this.#kept, bytes])
    this.#isCut ||= all.length > this.#size
    this.#kept = all.subarray(Math.max(all.length - this.#size, 0))
  }

  /** Without the line that the cut went through, if there are others. */
  get text(): string {
    const text = this.#kept.toString('utf8').trimEnd()
    if (!this.#isCut) return text
    const firstWhole = text.indexOf('\n') + 1
    return `…${text.slice(firstWhole)}`
  }
}
