/**
 * Limits that are checked before a body is parsed, because objects need many times the memory of their text.
 */
export interface ShapeLimits {
  /** Elements of the outermost array or object. */
  readonly elements: number
  /** All values, including nested ones. */
  readonly values: number
}

export type ShapeFault = 'elements' | 'values' | 'depth'

export const MAX_DEPTH = 16

const SMALL_BYTES = 64 * 1024

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

/**
 * Counts the elements, values and depth of a body while it arrives. It only recognizes strings, brackets and
 * commas; the parser decides whether the text is valid JSON.
 */
export class JsonShape {
  readonly #limits: ShapeLimits
  #bytes = 0
  #depth = 0
  #deepest = 0
  /** Commas between the elements of the outermost array or object. */
  #commas = 0
  #values = 0
  #isInString = false
  #isEscaped = false

  constructor(limits: ShapeLimits) {
    this.#limits = limits
  }

  /** Counts a chunk, and returns which limit the body exceeds so far. */
  take(chunk: Uint8Array): ShapeFault | undefined {
    let [depth, deepest, commas, values] = [this.#depth, this.#deepest, this.#commas, this.#values]
    let at = this.#isInString ? this.#endOfString(chunk, 0) : 0
    for (; at < chunk.length; at += 1) {
      const kind = kinds[chunk[at] as number]
      if (kind === OTHER) continue
      if (kind === STRING) at = this.#endOfString(chunk, at + 1) - 1
      else if (kind === CLOSES) depth -= 1
      else {
        values += 1
        if (kind === OPENS) {
          depth += 1
          if (depth > deepest) deepest = depth
        } else if (depth === 1) commas += 1
      }
    }
    this.#bytes += chunk.length
    this.#depth = depth
    this.#deepest = deepest
    this.#commas = commas
    this.#values = values
    return this.#fault
  }

  get #fault(): ShapeFault | undefined {
    // n commas separate n + 1 elements.
    if (this.#commas >= this.#limits.elements) return 'elements'
    // Small bodies are parsed in any case: the error of the check is more precise.
    if (this.#bytes < SMALL_BYTES) return undefined
    if (this.#values > this.#limits.values) return 'values'
    return this.#deepest > MAX_DEPTH ? 'depth' : undefined
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
