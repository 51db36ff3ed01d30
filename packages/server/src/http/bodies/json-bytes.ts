import { isUtf8 } from 'node:buffer'
import { parseExactJson } from '@baton/protocol'
import { RequestProblem } from '../answers/problems.ts'

/** Searching a longer text would block the event loop; its error has no position. */
const MAX_SEARCHED = 2 ** 17

/**
 * Finds the position of an unexpected token, which V8 does not report. Of the beginnings of the text, exactly
 * those that contain the token are refused because of it; shorter ones are refused because of their end.
 */
function placeOfUnexpected(text: string): number {
  let [without, within] = [0, text.length]
  while (within - without > 1) {
    const middle = Math.floor((without + within) / 2)
    if (isUnexpected(text.slice(0, middle))) within = middle
    else without = middle
  }
  return without
}

function isUnexpected(text: string): boolean {
  try {
    JSON.parse(text)
    return false
  } catch (error) {
    // For a few words, such as NaN alone, V8 names the whole text instead.
    return /^(?:Unexpected token|")/.test((error as Error).message)
  }
}

/** The bytes are not valid JSON; the message says where. */
export class NotJson extends RequestProblem {
  constructor(detail: string) {
    super('body_not_json', detail)
  }
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
