import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { BatonClient, UnreachableError, Worker } from '@baton/client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { descriptors } from './support/descriptors.ts'
import { FaultyNetwork } from './support/faulty-network.ts'
import { statesOf } from './support/partition-states.ts'
import { startService } from './support/service.ts'

const NOBODY = 'http://127.0.0.1:2'

describe('a client with several URLs', () => {
  test('tries the next one at once if nothing listens, and then stays there', async () => {
    const { url } = await startService()
    const asked: (number | undefined)[] = []
    const client = new BatonClient({
      url: [NOBODY, url],
      retryForSeconds: 0,
      onRequest: ({ status }) => asked.push(status),
    })
    expect(await client.callBack(descriptors('orders', 2))).toMatchObject({ accepted: 2 })
    expect(await client.task('orders')).toMatchObject({ state: 'open' })
    expect(asked).toEqual([200, 200])
  })

  test('uses the next one for a retry after a lost answer, and nothing is done twice', async () => {
    const service = await startService()
    const network = await FaultyNetwork.to(service.port)
    const client = new BatonClient({ url: [network.url, service.url] })
    await client.callBack(descriptors('orders', 6))
    network.fallSilent()
    const worker = new Worker(
      new BatonClient({ url: [network.url, service.url], timeoutSeconds: 0.3 }),
      async () => {},
      { concurrency: 2, untilIdle: true, waitSeconds: 0 },
    )
    await worker.run()
    const direct = new BatonClient(service.url)
    expect(await statesOf(direct, 'orders')).toEqual(Array(6).fill('done'))
    expect(await direct.task('orders')).toMatchObject({ attemptsWasted: 0 })
  })

  test('reports when none answers, and refuses an empty list', async () => {
    const client = new BatonClient({ url: [NOBODY, 'http://127.0.0.1:3'], retryForSeconds: 0 })
    await expect(client.tasks()).rejects.toThrow(UnreachableError)
    await expect(client.tasks()).rejects.toThrow(/^none of http:..127.0.0.1:\d, http:..127.0.0.1:\d answers/)
    expect(() => new BatonClient({ url: [] })).toThrow('got an empty list')
    expect(() => new BatonClient({ url: [NOBODY, 'ftp://x'] })).toThrow('begins with http://')
  })
})

describe('a node that names its leader', () => {
  /** A proxy that notes the paths of its requests. */
  async function listen(serve: RequestListener) {
    const paths: (string | undefined)[] = []
    const server = createServer((request, response) => {
      paths.push(request.url)
      serve(request, response)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close().closeAllConnections())
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, paths }
  }

  /** In front of a real service. It names `leader` in its answers, as a follower does. */
  async function follower(leader: () => string) {
    const { url } = await startService()
    return listen(async (request, response) => {
      const answer = await fetch(`${url}${request.url}`)
      const named = { 'baton-leader': leader() }
      response.writeHead(answer.status, { 'content-type': 'application/json', ...named })
      response.end(await answer.text())
    })
  }

  test('is left for the leader, if that is in the list', async () => {
    const leader = await startService()
    const node = await follower(() => leader.url)
    const client = new BatonClient({ url: [node.url, leader.url] })
    await client.tasks()
    await new BatonClient(leader.url).callBack(descriptors('orders', 1))
    expect(await client.task('orders')).toMatchObject({ state: 'open' })
    expect(node.paths).toHaveLength(1)
  })

  test.each([
    ['is not in the list', () => 'http://127.0.0.1:3'],
    ['is not a URL', () => 'north'],
  ])('stays if the leader %s', async (_, leader) => {
    const node = await follower(leader)
    const client = new BatonClient({ url: [node.url, NOBODY], retryForSeconds: 0 })
    for (let count = 0; count < 3; count += 1) await client.tasks()
    expect(node.paths).toHaveLength(3)
  })

  test.each([
    ['refuses connections', async () => ({ url: NOBODY, paths: [] }), 0],
    ['answers 401', () => listen((_, response) => response.writeHead(401).end()), 1],
    ['answers 403', () => listen((_, response) => response.writeHead(403).end()), 1],
  ])('is used again, and for a while, if the leader %s', async (_, unusable, asked) => {
    const leader = await unusable()
    const node = await follower(() => leader.url)
    const client = new BatonClient({ url: [node.url, leader.url], retryForSeconds: 0 })
    for (let count = 0; count < 4; count += 1) expect(await client.tasks()).toMatchObject({ tasks: [] })
    expect(node.paths).toHaveLength(4)
    expect(leader.paths).toHaveLength(asked)
  })

  test('is not left from https to http', async () => {
    const node = await follower(() => NOBODY)
    const sent: string[] = []
    // TLS ends in front of the node.
    const throughTls: typeof fetch = (input, init) => {
      sent.push(String(input))
      return fetch(String(input).replace('https:', 'http:'), init)
    }
    const secure = node.url.replace('http:', 'https:')
    const client = new BatonClient({ url: [secure, NOBODY], fetch: throughTls, retryForSeconds: 0 })
    await client.tasks()
    await client.tasks()
    expect(sent.every((url) => url.startsWith(secure))).toBe(true)
  })
})
