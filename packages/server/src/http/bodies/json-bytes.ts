import { isUtf8 } from 'node:buffer'
import { parseExactJson } from '@baton/protocol'

const LITERALS: Readonly<Record<string, string>> = { t: 'true', f: 'false', n: 'null' }
/** The whitespace of JSON. */
const SPACE = ' \t\n\r'
const BEGINS_A_VALUE = /["{[\-0-9tfn]/
/** After these characters, and at the start, a value must follow. */
const BEFORE_A_VALUE = '[:,'

/** Searching a longer text would block the event loop; its error has no position. */
const MAX_SEARCHED = 2 ** 20

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

export const BYTE_ORDER_MARK = '\ufeff'

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
    const at = body.length <= MAX_SEARCHED ? placeOfUnexpected(body) : undefined
    // V8 reports only one half of a surrogate pair.
    const character = at === undefined ? token : String.fromCodePoint(body.codePointAt(at) ?? 0)
    return `unexpected ${JSON.stringify(character)}${at === undefined ? '' : ` at position ${offset + at}`}`
  }
  return text.startsWith('Unexpected end') ? 'it is incomplete' : 'it is incomplete or has invalid syntax'
}
