import { isUtf8 } from 'node:buffer'
import { parseExactJson } from '@baton/protocol'
import { NotJson, notJson } from './json-bytes.ts'

/** Elements are parsed together up to this size: parsing each by itself takes longer. */
const CHUNK_BYTES = 64 * 2 ** 10
/** A thousand times the size of a long descriptor. */
export const MAX_ELEMENT_BYTES = 2 ** 20

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]
const [PREVIOUS, NEXT] = ['[0,', ',0]']
const BYTE_ORDER_MARK = Buffer.from('\ufeff')

export class ElementTooLarge extends Error {
  override name = 'ElementTooLarge'
  readonly index: number

  constructor(index: number) {
    super(`an element can have at most ${MAX_ELEMENT_BYTES / 2 ** 20} MiB`)
    this.index = index
  }
}

/**
 * The text of a JSON array that is too large to be parsed at once. Parsed values can take many times the
 * memory of their text, and V8 aborts the whole process when a thread has reached the limit of its heap.
 */
export class JsonArrayText {
  readonly #bytes: Buffer
  /** The position of the first byte that is not part of a byte order mark. */
  readonly #origin: number
  /** The position of the opening bracket. */
  readonly #opening: number

  constructor(bytes: Buffer) {
    if (!isUtf8(bytes)) throw new NotJson('the body is not valid UTF-8')
    this.#bytes = bytes
    this.#origin = bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0
    this.#opening = afterSpace(bytes, this.#origin)
  }

  /** The first character says which type a JSON text has. */
  get firstCharacter(): string {
    return String.fromCharCode(this.#bytes[this.#opening] ?? 0)
  }

  /** Parses the elements in order, a few at a time. Throws on an error, after the elements before it. */
  *elements(chunkBytes = CHUNK_BYTES): Generator<readonly unknown[]> {
    const bytes = this.#bytes
    const first = this.#opening + 1
    let chunkStart = first
    let start = first
    for (let index = 0; ; index += 1) {
      const end = endOfElement(bytes, start)
      if (end - start > MAX_ELEMENT_BYTES) throw new ElementTooLarge(index)
      const isLast = bytes[end] !== COMMA
      if (isLast || end - chunkStart >= chunkBytes) {
        const parsed = this.#parse(chunkStart, end, isLast ? this.#ending(end) : NEXT)
        yield parsed.slice(chunkStart === first ? 0 : 1, isLast ? undefined : -1)
        chunkStart = end + 1
      }
      if (isLast) return
      start = end + 1
    }
  }

  /** The closing bracket, and what is wrongly behind it. Empty if the text breaks off. */
  #ending(at: number): string {
    const behind = afterSpace(this.#bytes, at + 1)
    // One character of UTF-8 has up to four bytes.
    return this.#bytes.toString('utf8', at, behind < this.#bytes.length ? behind + 4 : at + 1)
  }

  /** Parses a chunk between stand-ins for the elements around it, so that errors are those of the whole. */
  #parse(start: number, end: number, ending: string): readonly unknown[] {
    const beginning = start === this.#opening + 1 ? '[' : PREVIOUS
    const text = beginning + this.#bytes.toString('utf8', start, end) + ending
    try {
      return parseExactJson(text) as readonly unknown[]
    } catch (error) {
      throw notJson(error, text, this.#characters(start) - beginning.length)
    }
  }

  /** Errors count characters, not bytes. */
  #characters(at: number): number {
    return this.#bytes.toString('utf8', this.#origin, at).length
  }
}

/** The position of the comma behind an element, of the bracket that closes the array, or of the end. */
function endOfElement(bytes: Buffer, start: number): number {
  let depth = 0
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === QUOTE) at = endOfString(bytes, at)
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) depth += 1
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) {
      if (depth === 0) return at
      depth -= 1
    } else if (byte === COMMA && depth === 0) return at
  }
  return bytes.length
}

/** The position of the closing quotation mark, or the end. */
function endOfString(bytes: Buffer, opening: number): number {
  let at = opening + 1
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at
}

function afterSpace(bytes: Buffer, from: number): number {
  let at = from
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1
  return at
}
