/** Checked before a body is parsed: objects need many times the memory of their text. */
export interface ShapeLimits {
  readonly elements: number
  /** All values, including nested ones. */
  readonly values: number
  /** The size of one element of the outermost array or object. */
  readonly elementBytes: number
}

export type ShapeFault = 'elements' | 'values' | 'element-size' | 'depth'

export const MAX_DEPTH = 16

export const SMALL_BYTES = 64 * 1024
/** A piece takes about a millisecond to parse and check, or up to 100 if it was made to be slow. */
const PIECE_BYTES = 128 * 1024
const PIECE_ELEMENTS = 1000

const QUOTE = 0x22
const BACKSLASH = 0x5c

const [OTHER, OPENS, CLOSES, SEPARATES, STRING] = [0, 1, 2, 3, 4]
const kinds = new Uint8Array(256)
for (const [character, kind] of [
  ['[', OPENS],
  ['{', OPENS],
  [']', CLOSES],
  ['}', CLOSES],
  [',', SEPARATES],
  ['"', STRING],
] as const)
  kinds[character.charCodeAt(0)] = kind

/** Counts elements, values and depth while a body arrives. The parser decides whether it is valid JSON. */
export class JsonShape {
  readonly #limits: ShapeLimits
  readonly #pieceBytes: number
  /** The positions of commas between elements at which the body can be cut into pieces. */
  readonly cuts: number[] = []
  #bytes = 0
  #depth = 0
  #deepest = 0
  /** Commas between the elements of the outermost array or object. */
  #commas = 0
  #values = 0
  /** The position of the bracket or comma before the current element; Infinity outside of elements. */
  #elementStart = Number.POSITIVE_INFINITY
  #oversized: number | undefined
  #elementsCut = 0
  #isInString = false
  #isEscaped = false

  constructor(limits: ShapeLimits, pieceBytes = PIECE_BYTES) {
    this.#limits = limits
    this.#pieceBytes = pieceBytes
  }

  /** The index of the first element that is too large. */
  get oversized(): number | undefined {
    return this.#oversized
  }

  /** Counts a chunk, and returns which limit the body exceeds so far. */
  take(chunk: Uint8Array): ShapeFault | undefined {
    let [depth, deepest, values] = [this.#depth, this.#deepest, this.#values]
    let at = this.#isInString ? this.#endOfString(chunk, 0) : 0
    for (; at < chunk.length; at += 1) {
      const kind = kinds[chunk[at] as number]
      if (kind === OTHER) continue
      if (kind === STRING) at = this.#endOfString(chunk, at + 1) - 1
      else if (kind === CLOSES) {
        depth -= 1
        if (depth === 0) {
          this.#measureElement(this.#bytes + at)
          this.#elementStart = Number.POSITIVE_INFINITY
        }
      } else {
        values += 1
        if (kind === OPENS) {
          depth += 1
          if (depth > deepest) deepest = depth
          if (depth === 1) this.#elementStart = this.#bytes + at
        } else if (depth === 1) this.#separate(this.#bytes + at)
      }
    }
    this.#bytes += chunk.length
    this.#measureElement(this.#bytes)
    this.#depth = depth
    this.#deepest = deepest
    this.#values = values
    return this.#fault
  }

  #separate(position: number): void {
    this.#measureElement(position)
    this.#elementStart = position
    this.#commas += 1
    const cut = this.cuts.at(-1) ?? 0
    if (position - cut < this.#pieceBytes && this.#commas - this.#elementsCut < PIECE_ELEMENTS) return
    this.cuts.push(position)
    this.#elementsCut = this.#commas
  }

  #measureElement(end: number): void {
    if (end - this.#elementStart - 1 > this.#limits.elementBytes) this.#oversized ??= this.#commas
  }

  get #fault(): ShapeFault | undefined {
    // n commas separate n + 1 elements.
    if (this.#commas >= this.#limits.elements) return 'elements'
    // Small bodies are parsed in any case: the error of the check is more precise.
    if (this.#bytes < SMALL_BYTES) return undefined
    if (this.#values > this.#limits.values) return 'values'
    if (this.#deepest > MAX_DEPTH) return 'depth'
    return this.#oversized === undefined ? undefined : 'element-size'
  }

  /** The position after the closing quotation mark, or the end of the chunk. */
  #endOfString(chunk: Uint8Array, from: number): number {
    let at = from
    if (this.#isEscaped && at < chunk.length) {
      this.#isEscaped = false
      at += 1
    }
    for (; at < chunk.length; at += 1) {
      const byte = chunk[at]
      if (byte === QUOTE) {
        this.#isInString = false
        return at + 1
      }
      if (byte === BACKSLASH) at += 1
    }
    this.#isInString = true
    // The chunk ended on a backslash.
    this.#isEscaped = at > chunk.length
    return chunk.length
  }
}
