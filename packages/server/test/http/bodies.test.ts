import { describe, expect, test } from 'vitest'
import { descriptor, TestApp } from '../support/test-app.ts'

const limitBytes = 10_240
const service = TestApp.shared({ bodyLimitMb: limitBytes / 2 ** 20 })
const json = { 'content-type': 'application/json' }
const endpoints = ['/call-back', '/settle', '/renew']

describe.each(endpoints)('the body of POST %s', (path) => {
  const send = (raw: string | Buffer, headers: Record<string, string> = json) =>
    service().ask('POST', path, { raw, headers })

  test.each([
    ['nothing', ''],
    ['something else than JSON', 'taskId=orders'],
    ['half of a document', '[{"taskId":'],
    ['two documents', '[1][2]'],
    ['a text in single quotes', "['a']"],
    ['bytes that are not UTF-8', Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d])],
    ['UTF-16', Buffer.from('["a"]', 'utf16le')],
    ['half of a character', Buffer.from([0x5b, 0x22, 0xc3])],
  ])('with %s is answered 400', async (_, raw) => {
    const answer = await send(raw)
    expect([answer.status, answer.body.code]).toEqual([400, 'body_not_json'])
  })

  test('that is missing is answered like an empty one', async () => {
    const answer = await service().ask('POST', path)
    expect([answer.status, answer.body.code]).toEqual([400, 'body_not_json'])
    expect(answer.body).toEqual((await send('')).body)
  })

  test('with a literal that JSON lacks is answered with its position', async () => {
    expect((await send('[NaN]')).body.detail).toBe('the body is not JSON: unexpected "N" at position 1')
  })

  test('is not echoed in the problem', async () => {
    expect((await send('["secret", oops]')).text).not.toContain('oops')
  })

  test.each([
    ['no content type', {}],
    ['another content type', { 'content-type': 'text/plain' }],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['an invalid content type', { 'content-type': ';' }],
    ['another charset', { 'content-type': 'application/json; charset=iso-8859-1' }],
    ['another compression', { ...json, 'content-encoding': 'br' }],
  ])('with %s is answered 415', async (_, headers) => {
    const answer = await send('[]', headers as Record<string, string>)
    expect([answer.status, answer.body.code]).toEqual([415, 'unsupported_media_type'])
  })

  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'Application/JSON',
  ])('is accepted as %s', async (type) => {
    expect((await send('[]', { 'content-type': type })).status).toBe(422)
  })

  test.each(['null', '{}', '"text"', '7', '[]', '[null]', '[[]]', '[true]'])(
    'of %s is answered 422',
    async (raw) => {
      const answer = await send(raw)
      expect([answer.status, answer.body.code]).toEqual([422, 'contract_violation'])
    },
  )

  test('may begin with a byte order mark', async () => {
    expect((await send('\ufeff[]')).status).toBe(422)
  })

  test('nested deeper than any stack is answered normally', async () => {
    const depth = 4000
    expect((await send(`${'['.repeat(depth)}${']'.repeat(depth)}`)).status).toBe(422)
  })
})

describe('a call-back', () => {
  const padded = (bytes: number) => {
    const array = JSON.stringify([descriptor('padded', 0, 1)])
    return array + ' '.repeat(bytes - array.length)
  }

  test('of exactly the limit is accepted', async () => {
    const answer = await service().ask('POST', '/call-back', { raw: padded(limitBytes), headers: json })
    expect(answer.status).toBe(200)
  })

  test('beyond the limit is answered 413', async () => {
    const answer = await service().ask('POST', '/call-back', { raw: padded(limitBytes + 1), headers: json })
    expect([answer.status, answer.body.code]).toEqual([413, 'body_too_large'])
  })

  test('with a field called __proto__ is refused by name', async () => {
    const raw = JSON.stringify([descriptor('orders', 0, 1)]).replace('{', '{"__proto__":{"x":1},')
    const answer = await service().ask('POST', '/call-back', { raw, headers: json })
    expect(answer.body.errors[0].pointer).toBe('/0/__proto__')
  })
})

test('a body nested a million levels deep is answered normally', async () => {
  const baton = await TestApp.open()
  const depth = 1_000_000
  for (const path of ['/call-back', '/settle', '/renew', '/tasks/t/retry']) {
    const answer = await baton.ask('POST', path, {
      raw: `${'['.repeat(depth)}${']'.repeat(depth)}`,
      headers: { 'content-type': 'application/json' },
    })
    expect([path, answer.status]).toEqual([path, 422])
  }
})
