import type { IncomingHttpHeaders } from 'node:http'

/** What the head of a plain request says. */
export interface ParsedHead {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** As it came, with the empty line at its end. */
  readonly text: string
  readonly bodyBytes: number
}

/** Workers' heads have some 200 bytes; a token may add as many. */
export const MAX_HEAD_LENGTH = 4096

const HEAD_END = '\r\n\r\n'
const REQUEST_LINE = /^(GET|POST) (\/[\x21-\x7e]*) HTTP\/1\.1$/
/**
 * The field names of RFC 9110, and values of what is printable. Blanks around a value are taken off afterwards: a pattern
 * that looks for their end begins anew at each blank, which took 40 ms for a head full of them.
 */
const FIELD_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/
const BLANKS = ' \t'

/** Fields that change how a message is read, or what becomes of the connection. */
const OUT_OF_THE_ORDINARY = [
  'transfer-encoding',
  'content-encoding',
  'expect',
  'upgrade',
  'te',
  'trailer',
  // Node's parser reads it as it reads Connection.
  'proxy-connection',
]

/**
 * Reads the head at the beginning of `text`, if there is a whole one and nothing about it is out of the ordinary:
 * one request line, each field once, no folding, a body of JSON with its length or none, a connection that stays.
 * Whatever departs from that by a hair is undefined, and for Node's own parser to judge.
 */
export function parseHead(text: string): ParsedHead | undefined {
  const end = text.indexOf(HEAD_END)
  if (end === -1) return undefined
  const [requestLine = '', ...fieldLines] = text.slice(0, end).split('\r\n')
  const [, method, url = ''] = REQUEST_LINE.exec(requestLine) ?? []
  const headers = readFields(fieldLines)
  if (headers === undefined || headers.host === undefined) return undefined
  if (OUT_OF_THE_ORDINARY.some((name) => headers[name] !== undefined)) return undefined
  if ((headers.connection ?? 'keep-alive').toLowerCase() !== 'keep-alive') return undefined
  const head = { url, headers, text: text.slice(0, end + HEAD_END.length) }
  const length = headers['content-length']
  if (method === 'GET') return length === undefined ? { ...head, method, bodyBytes: 0 } : undefined
  if (method !== 'POST' || length === undefined || !/^[1-9]\d{0,8}$/.test(length)) return undefined
  return headers['content-type'] === 'application/json'
    ? { ...head, method, bodyBytes: Number(length) }
    : undefined
}

function readFields(lines: readonly string[]): IncomingHttpHeaders | undefined {
  const fields: Record<string, string> = Object.create(null)
  for (const line of lines) {
    const [, name, padded] = FIELD_LINE.exec(line) ?? []
    if (name === undefined || padded === undefined) return undefined
    const value = withoutBlanks(padded)
    if (value.includes('\t')) return undefined
    const key = name.toLowerCase()
    if (key in fields) return undefined
    fields[key] = value
  }
  return fields
}

function withoutBlanks(padded: string): string {
  let start = 0
  let end = padded.length
  while (start < end && BLANKS.includes(padded.charAt(start))) start += 1
  while (start < end && BLANKS.includes(padded.charAt(end - 1))) end -= 1
  return padded.slice(start, end)
}
