import { request } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { localServer } from '../../../../test/support/local-server.ts'
import { HELLO, STREAM, STREAM_TYPE } from '../../src/cluster/followers.ts'
import { coveredText, digestOf } from '../../src/cluster/forwarded-request.ts'
import { LeaderLink } from '../../src/cluster/leader-link.ts'
import { PeerSignature } from '../../src/cluster/peer-signature.ts'
import { descriptors } from '../support/test-app.ts'
import { databases, startNodes, type TestNode } from './support/nodes.ts'

const on = databases()

/** A leader and a follower, and a third one that can sign because it can read the database. */
async function withSigner() {
  const database = await on.create()
  const [leader, follower] = await startNodes(database, {}, {})
  const [head] = await on.query(database, 'SELECT cluster_id, secret, leader_id FROM baton.head')
  const [clusterId, secret, leaderId] = [head?.['cluster_id'], head?.['secret'], head?.['leader_id']].map(
    String,
  )
  const signer = new PeerSignature('signer')
  const known = { clusterId: clusterId ?? '', secret: secret ?? '' }
  signer.learn({ ...known, term: null, leader: null, now: Date.now(), last: 0 })
  await leader.post('/call-back', descriptors('orders', 5))
  return { leader, follower, signer, leaderId: leaderId ?? '' }
}

interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string
}

const pull: Sent = { method: 'GET', path: '/pull', headers: {}, body: '' }
const settle = (text: string): Sent => ({
  method: 'POST',
  path: '/settle',
  headers: { 'content-type': 'application/json' },
  body: text,
})
const pause: Sent = { ...settle('{}'), path: '/tasks/orders/pause' }

function signatureOf(signer: PeerSignature, to: string, { method, path, headers, body }: Sent): string {
  const origin = { address: '192.0.2.1', host: '127.0.0.1', scheme: 'http', instanceId: 'signer' }
  const digest = digestOf(body === '' ? null : Buffer.from(body))
  return signer.sign(to, { ...origin, digest, waitedMillis: 0 }, coveredText(method, path, headers))
}

/** The fast path serves only connections that stay open, Fastify all others. */
const connections = ['keep-alive', 'close'] as const

/** Sends nothing but these headers, and what HTTP needs. */
function send(
  node: TestNode,
  { method, path, headers, body }: Sent,
  signature: string,
  connection: (typeof connections)[number] = 'keep-alive',
) {
  const length = body === '' ? {} : { 'content-length': Buffer.byteLength(body) }
  const all = { ...headers, ...length, connection, 'baton-forwarded': signature }
  return new Promise<{ status: number | undefined; refused: unknown }>((resolve, reject) => {
    const sent = request(`${node.url}${path}`, { method, headers: all, agent: false }, (answer) => {
      answer.resume()
      answer.once('end', () => {
        sent.destroy()
        resolve({ status: answer.statusCode, refused: answer.headers['baton-refused'] })
      })
    })
    sent.once('error', reject)
    sent.end(body)
  })
}

describe('a signed request', () => {
  test.each([
    ['on the fast path', pull],
    ['that Fastify serves', pause],
  ])('%s is served once, and refused when it is replayed', async (_, sent) => {
    const { leader, signer, leaderId } = await withSigner()
    const signature = signatureOf(signer, leaderId, sent)
    expect((await send(leader, sent, signature)).status).toBe(200)
    expect(await send(leader, sent, signature)).toEqual({ status: 421, refused: 'repeated' })
    expect(await send(leader, sent, signature)).toEqual({ status: 421, refused: 'repeated' })
  })

  test('is refused by a node that does not lead, or for another node: nothing is forwarded twice', async () => {
    const { leader, follower, signer, leaderId } = await withSigner()
    for (const sent of [pull, pause]) {
      const refused = { status: 421, refused: 'not_leading' }
      expect(await send(follower, sent, signatureOf(signer, leaderId, sent))).toEqual(refused)
      expect(await send(leader, sent, signatureOf(signer, 'another', sent))).toEqual(refused)
    }
  })

  test.each<[what: string, signed: Sent, sent: Sent, refused: string]>([
    ['method', pull, { ...pull, method: 'HEAD' }, 'unsigned'],
    ['target', pull, { ...pull, path: '/pull?batch=5' }, 'unsigned'],
    ['header', pull, { ...pull, headers: { prefer: 'batch=5' } }, 'unsigned'],
    ['forwarding header', pull, { ...pull, headers: { 'x-forwarded-for': '192.0.2.9' } }, 'unsigned'],
    ['body', settle('[]'), settle('[{}]'), 'damaged'],
    ['body on a route of Fastify', pause, { ...pause, body: '[]' }, 'damaged'],
    ['body, which is removed,', pause, { ...pause, body: '' }, 'damaged'],
  ])('with another %s is refused', async (_, signed, sent, refused) => {
    const { leader, signer, leaderId } = await withSigner()
    for (const connection of connections)
      expect(await send(leader, sent, signatureOf(signer, leaderId, signed), connection)).toEqual({
        status: 421,
        refused,
      })
    expect(await leader.pull()).toEqual(['orders-0-0'])
  })

  test('with another secret is refused, and so is a header that is none', async () => {
    const { leader, leaderId } = await withSigner()
    const forger = new PeerSignature('forger')
    const row = { term: null, leader: null, now: Date.now(), last: 0 }
    forger.learn({ ...row, clusterId: 'c', secret: 'guessed' })
    for (const sent of [pull, pause])
      for (const signature of [signatureOf(forger, leaderId, sent), '', 'a.b', '{}'])
        for (const connection of connections)
          expect(await send(leader, sent, signature, connection)).toEqual({
            status: 421,
            refused: 'unsigned',
          })
  })
})

describe('the proof that a node leads', () => {
  /** A link to a node that answers the nonce of the link with another one. */
  async function linkTo(nonceOf: (nonce: string) => string) {
    const row = { term: 'now', now: Date.now(), last: 0, clusterId: 'c', secret: 's' }
    const [leader, follower] = ['leader', 'follower'].map((name) => {
      const signature = new PeerSignature(name)
      signature.learn({ ...row, leader: null })
      return signature
    }) as [PeerSignature, PeerSignature]
    const { url } = await localServer(({ headers }, response) => {
      const asked = leader.check<{ nonce: string }>(headers.authorization, STREAM)
      if (typeof asked === 'string') throw new Error(asked)
      const hello = leader.sign('follower', { term: 'now', nonce: nonceOf(asked.nonce) }, HELLO)
      response.writeHead(200, { 'content-type': STREAM_TYPE }).write(`${JSON.stringify({ hello })}\n`)
    })
    const opened = Promise.withResolvers<'opened'>()
    const events = { opened: () => opened.resolve('opened'), leaving: () => {} }
    const link = new LeaderLink({ ...row, leader: { nodeId: 'leader', url } }, follower, events)
    onTestFinished(() => link.close())
    return Promise.race([opened.promise, link.ended.then(({ kind }) => kind)])
  }

  test('is of this stream: one that was recorded opens no link', async () => {
    expect(await linkTo((nonce) => nonce)).toBe('opened')
    expect(await linkTo(() => 'of another stream')).toBe('broken')
  })
})
