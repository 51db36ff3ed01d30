import { isUtf8 } from 'node:buffer'
import { parseExactJson } from '@baton/protocol'
import { placeOfUnexpected } from './json-fault.ts'

/** The bytes are not what JSON.parse takes; the text says where it broke off. */
export class NotJson extends Error {
  override name = 'NotJson'
}

const BYTE_ORDER_MARK = '\ufeff'

/** Bytes that are not UTF-8 are refused and not replaced: what is stored is what was sent. */
export function parseJsonBytes(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new NotJson('the body is empty')
  if (!isUtf8(bytes)) throw new NotJson('the body is not valid UTF-8')
  const decoded = bytes.toString('utf8')
  const text = decoded.startsWith(BYTE_ORDER_MARK) ? decoded.slice(1) : decoded
  try {
    return parseExactJson(text)
  } catch (error) {
    throw new NotJson(`the body is not JSON: ${reasonOf(error, text)}`)
  }
}

/** V8 quotes the body in its message; a place is enough, and a body is not echoed. */
function reasonOf(error: unknown, body: string): string {
  const text = error instanceof Error ? error.message : ''
  const place = /at position \d+/.exec(text)?.[0]
  if (place !== undefined) return `unexpected character ${place}`
  // Where V8 quotes instead of telling the place, it begins with what it did not expect.
  const token = /^Unexpected token '(.+?)', /su.exec(text)?.[1]
  if (token !== undefined) {
    const at = placeOfUnexpected(body)
    // V8 tells half of a character that JavaScript has as two.
    const character = at === undefined ? token : String.fromCodePoint(body.codePointAt(at) ?? 0)
    return `unexpected ${JSON.stringify(character)}${at === undefined ? '' : ` at position ${at}`}`
  }
  return text.startsWith('Unexpected end') ? 'it ends too early' : 'it breaks off or holds something else'
}
