import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import type { Cases } from '../run-cases.ts'

/** A server that counts its requests and answers as a node does. */
class Node {
  asked = 0
  status = 200
  /** The URL in `Baton-Leader`. */
  leader: string | undefined
  readonly #server = createServer((_request, response) => {
    this.asked += 1
    if (this.leader !== undefined) response.setHeader('baton-leader', this.leader)
    response.writeHead(this.status).end('{"tasks":[],"next":null}')
  })

  static async start(): Promise<Node> {
    const node = new Node()
    await new Promise<void>((resolve) => node.#server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => node.stop())
    return node
  }

  stop(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }
}

async function pair() {
  const [follower, leader] = [await Node.start(), await Node.start()]
  follower.leader = leader.url
  return { follower, leader, service: { url: [follower.url, leader.url], retryForSeconds: 5 } }
}

export const leaders: Cases = {
  'that an answer names is asked from then on': async (client) => {
    const { follower, leader, service } = await pair()
    for (let call = 0; call < 3; call += 1) await client.call(service, 'tasks')
    expect([follower.asked, leader.asked]).toEqual([1, 2])
  },

  'whose URL the program did not give is not asked': async (client) => {
    const { follower, leader, service } = await pair()
    const elsewhere = await Node.start()
    for (const named of [elsewhere.url, 'north', elsewhere.url]) {
      follower.leader = named
      await client.call(service, 'tasks')
    }
    expect([follower.asked, leader.asked, elsewhere.asked]).toEqual([3, 0, 0])
  },

  'that refuses the token is left again, and no answer is lost': async (client) => {
    for (const status of [401, 403]) {
      const { follower, leader, service } = await pair()
      leader.status = status
      for (let call = 0; call < 4; call += 1) await client.call(service, 'tasks')
      expect([follower.asked, leader.asked]).toEqual([4, 1])
    }
  },

  'that does not speak TLS on its port is left again': async (client) => {
    const { follower, leader } = await pair()
    follower.leader = leader.url.replace('http:', 'https:')
    const service = { url: [follower.url, follower.leader], retryForSeconds: 0 }
    for (let call = 0; call < 4; call += 1) await client.call(service, 'tasks')
    expect([follower.asked, leader.asked]).toEqual([4, 0])
  },

  'that cannot be reached is left again': async (client) => {
    const { follower, leader, service } = await pair()
    await client.call(service, 'tasks')
    leader.stop()
    for (let call = 0; call < 3; call += 1) await client.call(service, 'tasks')
    expect(follower.asked).toBe(4)
  },
}
