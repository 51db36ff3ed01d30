import type { IncomingHttpHeaders } from 'node:http'

/** The parsed head of a plain request. */
export interface ParsedHead {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** The original text, including the empty line at the end. */
  readonly text: string
  readonly bodyBytes: number
}

/** Heads of workers have about 200 bytes; a token may double that. */
export const MAX_HEAD_LENGTH = 4096

const HEAD_END = '\r\n\r\n'
const REQUEST_LINE = /^(GET|POST) (\/[\x21-\x7e]*) HTTP\/1\.1$/
/**
 * Field names as in RFC 9110, and printable values. Blanks around a value are trimmed separately: a pattern
 * that also matches trailing blanks backtracks at every blank.
 */
const FIELD_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/
const BLANKS = ' \t'

/** Fields that change how a message is parsed, or whether the connection stays open. */
const OUT_OF_THE_ORDINARY = [
  'transfer-encoding',
  'content-encoding',
  'expect',
  'upgrade',
  'te',
  'trailer',
  // Node's parser treats it like Connection.
  'proxy-connection',
]

/**
 * Parses the head at the start of `text` if it is complete and plain: one request line, each field once, no
 * line folding, a JSON body with a Content-Length or no body, and a connection that stays open. Returns
 * undefined for everything else, which is left to Node's parser.
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
