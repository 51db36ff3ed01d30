import { describe, expect, test } from 'vitest'
import { parseHead } from '../../src/http/fast-path/heads.ts'

const head = (...lines: string[]) => `${lines.join('\r\n')}\r\n\r\n`
const settle = ['POST /settle HTTP/1.1', 'Host: a', 'Content-Type: application/json', 'Content-Length: 17']

describe('a plain head', () => {
  test('is parsed with its fields in lower case, without its body', () => {
    const text = head('GET /pull HTTP/1.1', 'Host: localhost:7070', 'X-Instance-Id:\tw 1 ', 'Prefer: batch=5')
    expect(parseHead(text)).toEqual({
      method: 'GET',
      url: '/pull',
      headers: { host: 'localhost:7070', 'x-instance-id': 'w 1', prefer: 'batch=5' },
      text,
      bodyBytes: 0,
    })
    const blanks = head('GET /pull HTTP/1.1', 'Host: \t a\t ', 'Prefer:', 'X-Instance-Id:   ')
    expect(parseHead(blanks)?.headers).toEqual({ host: 'a', prefer: '', 'x-instance-id': '' })
    const text2 = head(...settle)
    expect(parseHead(`${text2}[{"leaseId":"a"}]`)).toMatchObject({ text: text2, bodyBytes: 17 })
  })

  test.each([
    ['without an end', 'GET /pull HTTP/1.1\r\nHost: a\r\n'],
    ['with lines that end otherwise', 'GET /pull HTTP/1.1\nHost: a\n\n'],
    ['with a line feed inside a field', head('GET /pull HTTP/1.1', 'Host: a', 'Prefer: wait=1\nX: y')],
    ['with a carriage return inside a field', head('GET /pull HTTP/1.1', 'Host: a', 'Prefer: a\rb')],
    ['with an empty line before it', `\r\n${head('GET /pull HTTP/1.1', 'Host: a')}`],
    ['of HTTP/1.0', head('GET /pull HTTP/1.0', 'Host: a')],
    ['of HTTP/2.0', head('GET /pull HTTP/2.0', 'Host: a')],
    ['of another method', head('HEAD /pull HTTP/1.1', 'Host: a')],
    ['with a whole address', head('GET http://a/pull HTTP/1.1', 'Host: a')],
    ['with two spaces in its first line', head('GET  /pull HTTP/1.1', 'Host: a')],
    ['without a host', head('GET /pull HTTP/1.1', 'Accept: */*')],
    ['with two hosts', head('GET /pull HTTP/1.1', 'Host: a', 'host: b')],
    ['with a field twice', head('GET /pull HTTP/1.1', 'Host: a', 'Prefer: wait=1', 'Prefer: batch=2')],
    ['with a folded field', head('GET /pull HTTP/1.1', 'Host: a', 'Prefer: wait=1,', ' batch=2')],
    ['with a space before a colon', head('GET /pull HTTP/1.1', 'Host: a', 'Content-Length : 4')],
    ['with a field without a name', head('GET /pull HTTP/1.1', 'Host: a', ': b')],
    ['with a tab inside a field', head('GET /pull HTTP/1.1', 'Host: a', 'Prefer: a\tb')],
    ['with NUL in a field', head('GET /pull HTTP/1.1', 'Host: a', 'Prefer: \0')],
    ['with a body where none belongs', head('GET /pull HTTP/1.1', 'Host: a', 'Content-Length: 4')],
    ['that wants its connection closed', head('GET /pull HTTP/1.1', 'Host: a', 'Connection: close')],
    [
      'that wants its connection closed, in the header of old proxies',
      head('GET /pull HTTP/1.1', 'Host: a', 'Proxy-Connection: close'),
    ],
    ['that asks for another protocol', head('GET /pull HTTP/1.1', 'Host: a', 'Upgrade: h2c')],
    ['with chunks', head(...settle, 'Transfer-Encoding: chunked')],
    ['with a body that is encoded', head(...settle, 'Content-Encoding: gzip')],
    ['that waits for 100 Continue', head(...settle, 'Expect: 100-continue')],
    ['with trailers', head(...settle, 'Trailer: X')],
    ['with two lengths', head(...settle, 'Content-Length: 18')],
    ['without a length', head(...settle.slice(0, 3))],
    ['with a length that is no number', head(...settle.slice(0, 3), 'Content-Length: 1e2')],
    ['with a signed length', head(...settle.slice(0, 3), 'Content-Length: +17')],
    ['with two lengths in one', head(...settle.slice(0, 3), 'Content-Length: 17, 17')],
    ['with no body', head(...settle.slice(0, 3), 'Content-Length: 0')],
    ['with another type', head(...settle.slice(0, 2), 'Content-Type: text/plain', 'Content-Length: 17')],
  ])('is not a head %s', (_, text) => {
    expect(parseHead(text)).toBeUndefined()
  })

  test('has no inherited fields', () => {
    const read = parseHead(head('GET /pull HTTP/1.1', 'Host: a', '__proto__: b'))
    expect(read?.headers['constructor']).toBeUndefined()
    expect(Object.keys(read?.headers ?? {})).toEqual(['host', '__proto__'])
  })
})
