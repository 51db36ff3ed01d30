import { BatonClient } from '@baton/client'
import { expect, test } from 'vitest'
import { localServer } from '../../../test/support/local-server.ts'

const NOBODY = 'http://127.0.0.1:2'

test('a client is not made with an empty list of URLs, or with one that it cannot use', () => {
  expect(() => new BatonClient({ url: [] })).toThrow('got an empty list')
  expect(() => new BatonClient({ url: [NOBODY, 'ftp://x'] })).toThrow('begins with http://')
})

test('a node that names its leader is not left from https to http', async () => {
  const { port } = await localServer((_request, response) => {
    response.writeHead(200, { 'baton-leader': NOBODY }).end('{"tasks":[],"next":null}')
  })
  const secure = `https://127.0.0.1:${port}`
  const sent: string[] = []
  // TLS ends in front of the node.
  const throughTls: typeof fetch = (input, init) => {
    sent.push(String(input))
    return fetch(String(input).replace('https:', 'http:'), init)
  }
  const client = new BatonClient({ url: [secure, NOBODY], fetch: throughTls, retryForSeconds: 0 })
  await client.tasks()
  await client.tasks()
  expect(sent).toHaveLength(2)
  expect(sent.every((url) => url.startsWith(secure))).toBe(true)
})
