import { BatonClient, UnreachableError } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { localServer } from '../../../test/support/local-server.ts'
import { tokenNamed, tokensFile } from '../../../test/support/tokens-file.ts'
import { send } from '../src/node/send.ts'
import { descriptors } from './support/descriptors.ts'
import { startService } from './support/service.ts'

/** The client's default requests on Node. */
const clientOf = (url: string) => new BatonClient({ url, retryForSeconds: 0 })

describe("Node's own HTTP client", () => {
  test('is used by default on Node', async () => {
    const { url } = await localServer(({ headers }, response) =>
      response.end(JSON.stringify({ tasks: [], headers })),
    )
    // Only fetch sends Sec-Fetch headers.
    expect(await clientOf(url).tasks()).not.toHaveProperty(['headers', 'sec-fetch-mode'])
    expect(await new BatonClient({ url, fetch }).tasks()).toHaveProperty(['headers', 'sec-fetch-mode'])
  })

  test('is replaced by the fetch of the options, which bypasses every cache', async () => {
    const caches: unknown[] = []
    const own: typeof fetch = async (_url, init) => {
      caches.push(init?.cache)
      return new Response('{"tasks":[],"partition_name":"orders-0-0"}')
    }
    const client = new BatonClient({ url: 'http://127.0.0.1:2', fetch: own })
    await client.tasks()
    await client.manifest('orders').next()
    expect(caches).toEqual(['no-store', 'no-store'])
  })

  test('sends one request after the other over one connection', async () => {
    const { server, url } = await localServer((_request, response) => response.end('{"tasks":[]}'))
    let connections = 0
    server.on('connection', () => {
      connections += 1
    })
    for (let request = 0; request < 5; request += 1) await clientOf(url).tasks()
    expect(connections).toBe(1)
  })

  test.each([301, 302, 307, 308])('follows %i as fetch does', async (status) => {
    const service = await startService()
    await new BatonClient(service.url).callBack(descriptors('orders', 1))
    const { url } = await localServer((request, response) => {
      response.writeHead(status, { location: `${service.url}${request.url}` }).end('elsewhere')
    })
    const { partitions } = await clientOf(url).pull()
    expect(partitions).toHaveLength(1)
  })

  test('keeps the body of a redirected request', async () => {
    const service = await startService()
    const { url } = await localServer((request, response) => {
      request.resume()
      response.writeHead(308, { location: `${service.url}${request.url}` }).end()
    })
    expect(await clientOf(url).callBack(descriptors('orders', 3))).toMatchObject({ accepted: 3 })
  })

  test.each([
    ['the token', 308, 401, (client: BatonClient) => client.tasks()],
    ['the method', 301, 405, (client: BatonClient) => client.renew(['a'])],
  ])('reports a redirect that drops %s', async (_, redirect, status, call) => {
    const token = tokenNamed('loader')
    const tokens = [{ name: 'loader', token, roles: ['operator', 'worker'] }]
    const service = await startService('--tokens-file', await tokensFile({ tokens }))
    const { url } = await localServer((request, response) => {
      request.resume()
      response.writeHead(redirect, { location: `${service.url}${request.url}` }).end()
    })
    const client = new BatonClient({ url, token, retryForSeconds: 0 })
    await expect(call(client)).rejects.toThrow(`status ${status} after a redirect to ${service.url}`)
  })

  test('reads an answer whose chunks split characters', async () => {
    const bytes = Buffer.from(JSON.stringify({ tasks: ['Müller 🥖'] }))
    const { url } = await localServer(async (_request, response) => {
      for (const byte of bytes) {
        response.write(Buffer.of(byte))
        await new Promise(setImmediate)
      }
      response.end()
    })
    expect(await clientOf(url).tasks()).toEqual({ tasks: ['Müller 🥖'] })
  })

  test('rejects a truncated answer', async () => {
    const { url } = await localServer((_request, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{"partitions":[')
      setImmediate(() => response.destroy())
    })
    await expect(clientOf(url).pull()).rejects.toThrow(UnreachableError)
  })

  test('ends a request at a signal, even if its answer has begun', async () => {
    const { url } = await localServer((_request, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{')
    })
    const controller = new AbortController()
    const { signal } = controller
    const request = { method: 'GET', headers: {}, signal, cache: 'no-store' } as const
    const answer = await send(url, request)
    const text = answer.text()
    controller.abort()
    await expect(text).rejects.toThrow(TypeError)
  })
})
