import { expect, test } from 'vitest'
import { HeadCache, type RouteOf } from '../../src/http/fast-path/heads.ts'
import { RequestCounts } from '../../src/http/observability/answered-requests.ts'
import { type KeyOwner, ownedKey } from '../../src/http/requests/preferences.ts'
import { Dice, fuzzSeed, mutateBytes } from '../support/mutation.ts'

const counts = new RequestCounts().of('GET', '/pull')
const route = { serve: async () => ({ waited: false }), counts, urgency: 'pull' as const }
const routeOf: RouteOf = ({ url }) => (url === '/pull' || url === '/settle' ? route : undefined)

const keyOwner: KeyOwner = (_, instance) => `${instance}`
const owned = (key: string, instance: string | null) => ownedKey(key, `${instance}`)

const pull = (key: string) =>
  `GET /pull HTTP/1.1\r\nHost: a\r\nPrefer: batch=3\r\nIdempotency-Key: ${key}\r\nX-Instance-Id: w\r\n\r\n`
const settle = (key: string, body: string) =>
  `POST /settle HTTP/1.1\r\nHost: a\r\nidempotency-key:${key}\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n${body}`

/** The parsed request, or the reason why it is refused. */
function readBy(heads: HeadCache, bytes: Buffer): unknown {
  const request = heads.read(bytes)
  if (request === undefined) return undefined
  const { head, ...others } = request
  try {
    return { ...others, pull: head.pull }
  } catch (error) {
    return { ...others, refused: String(error) }
  }
}

test('a cached head with another key gives the same request with that key', () => {
  const heads = new HeadCache(routeOf, keyOwner)
  for (const key of ['first-key', 'other-key', 'third-key']) {
    const { head } = heads.read(Buffer.from(pull(key))) ?? {}
    expect(head?.pull).toMatchObject({ batch: 3, instance: 'w', key: owned(key, 'w') })
  }
})

test('each request keeps its own key while others of the connection are read', () => {
  const heads = new HeadCache(routeOf, keyOwner)
  const read = ['k-1', 'k-2', 'k-3'].map((key) => heads.read(Buffer.from(settle(key, '[42]')))?.head)
  expect(read.map((request) => request?.pull.key)).toEqual(
    ['k-1', 'k-2', 'k-3'].map((key) => owned(key, null)),
  )
})

test(`earlier requests of a connection do not change the parsing of later ones (FUZZ_SEED=${fuzzSeed})`, () => {
  const dice = new Dice(fuzzSeed)
  const keys = [
    'k-1',
    'k-2',
    'k\t2',
    'k 2',
    'k\r2',
    'k\n2',
    '\r\n\r',
    '"k"',
    '"\\"',
    'a:b',
    'é-1',
    ',,,',
    '   ',
  ]
  let known = 0
  for (let connection = 0; connection < 300; connection += 1) {
    const heads = new HeadCache(routeOf, keyOwner)
    for (let sent = 0; sent < 20; sent += 1) {
      const key = dice.pick(keys)
      const text = dice.pick([pull(key), settle(key, '[42]'), settle(key, '')])
      const bytes = dice.below(4) === 0 ? mutateBytes(text, dice) : Buffer.from(text, 'latin1')
      const request = readBy(heads, bytes)
      expect(request, JSON.stringify(bytes.toString('latin1'))).toEqual(
        readBy(new HeadCache(routeOf, keyOwner), bytes),
      )
      if (request !== undefined) known += 1
    }
  }
  expect(known).toBeGreaterThan(1000)
})
