import { isUtf8 } from 'node:buffer'
import { parseExactJson } from '@baton/protocol'

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

/** The bytes of a body that a thread will join and parse. */
export class UnparsedBody {
  readonly chunks: readonly Buffer[]

  constructor(chunks: readonly Buffer[]) {
    this.chunks = chunks
  }
}

const LITERALS: Readonly<Record<string, string>> = { t: 'true', f: 'false', n: 'null' }
/** The whitespace of JSON. */
const SPACE = ' \t\n\r'
const BEGINS_A_VALUE = /["{[\-0-9tfn]/
/** After these characters, and at the start, a value must follow. */
const BEFORE_A_VALUE = '[:,'

const ESCAPED = '"\\/bfnrtu'

/**
 * Finds the position of an unexpected token; undefined when there is none. V8 reports the position of every
 * error, except for an invalid value, such as NaN or after a superfluous comma, and for an invalid escape
 * that is not ASCII. So this checks only values and escapes, and assumes that the rest is valid.
 */
function placeOfUnexpected(text: string): number | undefined {
  let before = ''
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (SPACE.includes(character)) continue
    const isAwaited = before === '' || BEFORE_A_VALUE.includes(before)
    const isEmptyArray = before === '[' && character === ']'
    if (isAwaited && !isEmptyArray && !BEGINS_A_VALUE.test(character)) return at
    const literal = LITERALS[character]
    if (literal !== undefined) {
      const departs = [...literal].findIndex((letter, offset) => text.charAt(at + offset) !== letter)
      if (departs !== -1) return at + departs
      at += literal.length - 1
    } else if (character === '"') {
      const end = endOfString(text, at)
      const fault = wrongEscape(text, at, end)
      if (fault !== undefined) return fault
      at = end
    }
    before = character
  }
  return undefined
}

/** The position of the closing quotation mark. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text.charAt(at) !== '"') at += text.charAt(at) === '\\' ? 2 : 1
  return at
}

function wrongEscape(text: string, start: number, end: number): number | undefined {
  for (let at = start + 1; at < end; at += 1) {
    if (text.charAt(at) !== '\\') continue
    at += 1
    if (!ESCAPED.includes(text.charAt(at))) return at
  }
  return undefined
}

/** The bytes are not valid JSON; the message says where. */
export class NotJson extends Error {
  override name = 'NotJson'
}

const BYTE_ORDER_MARK = '\ufeff'

/** Refuses invalid UTF-8 instead of replacing it, so that what is stored is what was sent. */
export function parseJsonBytes(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new NotJson('the body is empty')
  if (!isUtf8(bytes)) throw new NotJson('the body is not valid UTF-8')
  const decoded = bytes.toString('utf8')
  const text = decoded.startsWith(BYTE_ORDER_MARK) ? decoded.slice(1) : decoded
  try {
    return parseExactJson(text)
  } catch (error) {
    throw notJson(error, text)
  }
}

/** The error for a text that cannot be parsed. The text is a part of the body that begins at `offset`. */
export function notJson(error: unknown, text: string, offset = 0): NotJson {
  return new NotJson(`the body is not JSON: ${reasonOf(error, text, offset)}`)
}

/** Builds a message from V8's error. V8 quotes the body, which must not be echoed; the position is enough. */
function reasonOf(error: unknown, body: string, offset: number): string {
  const text = error instanceof Error ? error.message : ''
  const place = /at position (\d+)/.exec(text)?.[1]
  if (place !== undefined) return `unexpected character at position ${offset + Number(place)}`
  // If V8 does not report a position, its message begins with the unexpected token.
  const token = /^Unexpected token '(.+?)', /su.exec(text)?.[1]
  if (token !== undefined) {
    const at = placeOfUnexpected(body)
    // V8 reports only one half of a surrogate pair.
    const character = at === undefined ? token : String.fromCodePoint(body.codePointAt(at) ?? 0)
    return `unexpected ${JSON.stringify(character)}${at === undefined ? '' : ` at position ${offset + at}`}`
  }
  return text.startsWith('Unexpected end') ? 'it is incomplete' : 'it is incomplete or has invalid syntax'
}
