import { describe, expect, test } from 'vitest'
import { bearer, tokenNamed, tokensFile, writeTokens } from '../../../../test/support/tokens-file.ts'
import { until } from '../../../../test/support/until.ts'
import { listening, postBytes, pullBytes, RawConnection } from '../support/raw-connection.ts'
import { type Answer, descriptor, TestApp } from '../support/test-app.ts'

const tokens = [
  { name: 'any', token: tokenNamed('any'), roles: ['producer', 'worker'] },
  { name: 'orders', token: tokenNamed('orders'), roles: ['worker'], tables: ['results.orders'] },
  { name: 'two', token: tokenNamed('two'), roles: ['worker'], tables: ['results.orders', 'results.items'] },
]
const as = (name: string) => bearer(tokenNamed(name))
const of = (table: string, index: number) =>
  descriptor('mixed', 0, index, { computeTableName: `results.${table}` })

interface Leased {
  readonly computeTableName: string
  readonly lease: { readonly id: string }
}

/** Sends requests through the fast path or through the server. */
interface Path {
  pull(name: string, query?: string): Promise<Answer>
  settle(name: string, body: unknown, query?: string): Promise<Answer>
}

async function guarded(kind: 'fast path' | 'server'): Promise<{ baton: TestApp; path: Path; port: number }> {
  const baton = await TestApp.open({ tokensFile: await tokensFile({ tokens }) })
  const port = await listening(baton.app)
  const more = kind === 'fast path' ? {} : { TE: 'trailers' }
  const headersOf = (name: string) => ({ Host: 'localhost', Authorization: as(name).authorization, ...more })
  const send = async (bytes: string) => {
    const connection = await RawConnection.open(port)
    connection.send(bytes)
    return connection.answer()
  }
  const path: Path = {
    pull: (name, query = '') => send(pullBytes(headersOf(name)).replace('/pull', `/pull${query}`)),
    settle: (name, body, query = '') =>
      send(postBytes(`/settle${query}`, JSON.stringify(body), headersOf(name))),
  }
  return { baton, path, port }
}

const tablesOf = ({ body }: Answer): string[] =>
  body.partitions.map(({ computeTableName }: Leased) => computeTableName)

describe.each(['fast path', 'server'] as const)(
  'a worker that is limited to tables, by the %s path',
  (kind) => {
    test('pulls partitions of its tables and no others', async () => {
      const { baton, path } = await guarded(kind)
      const names = ['people', 'orders', 'items', 'people', 'orders']
      await baton.post('/call-back', names.map(of), as('any'))
      expect(tablesOf(await path.pull('orders', '?batch=10'))).toEqual(['results.orders', 'results.orders'])
      expect(tablesOf(await path.pull('orders'))).toEqual([])
      expect(tablesOf(await path.pull('two', '?batch=10'))).toEqual(['results.items'])
      expect(tablesOf(await path.pull('any', '?batch=10'))).toEqual(['results.people', 'results.people'])
    })

    test('may select among its tables, and is refused if it names another', async () => {
      const { baton, path } = await guarded(kind)
      await baton.post('/call-back', ['items', 'orders', 'people'].map(of), as('any'))
      const { status, body } = await path.pull('two', '?table=results.items&table=results.people')
      expect([status, body.code]).toEqual([403, 'token_limited'])
      expect(body.detail).toBe(
        'the token is limited to partitions of "results.orders" or "results.items", and the pull selects "results.people"',
      )
      expect(tablesOf(await path.pull('two', '?table=results.items&batch=9'))).toEqual(['results.items'])
      expect(tablesOf(await path.pull('two', '?task=mixed&batch=9'))).toEqual(['results.orders'])
    })

    test('settles leases of its tables, and others are unknown to it', async () => {
      const { baton, path } = await guarded(kind)
      await baton.post('/call-back', ['orders', 'people', 'orders', 'people'].map(of), as('any'))
      const { body } = await path.pull('any', '?batch=3')
      const settlements = body.partitions.map((each: Leased) => ({ leaseId: each.lease.id, outcome: 'done' }))
      const settled = await path.settle('orders', settlements, '?batch=5')
      const [first, foreign, second] = settlements.map(({ leaseId }: { leaseId: string }) => leaseId)
      expect(settled.body.settled).toEqual([first, second])
      expect(settled.body.refused).toMatchObject([{ leaseId: foreign, code: 'lease_unknown' }])
      expect(tablesOf(settled)).toEqual([])
      const refused = await path.settle('orders', settlements, '?batch=1&table=results.people')
      expect([refused.status, refused.body.code]).toEqual([403, 'token_limited'])
      expect((await path.settle('any', [settlements[1]])).body.settled).toEqual([foreign])
    })

    test('waits until a partition of its tables is ready', async () => {
      const { baton, path } = await guarded(kind)
      const waiting = path.pull('orders', '?wait=60')
      await until(() => baton.app.handOff.waitingPulls === 1)
      await baton.post('/call-back', [of('people', 0)], as('any'))
      await baton.post('/call-back', [of('orders', 1)], as('any'))
      expect(tablesOf(await waiting)).toEqual(['results.orders'])
    })
  },
)

test('a worker that is limited to tables renews leases of its tables, and others are unknown to it', async () => {
  const { baton, path } = await guarded('server')
  await baton.post('/call-back', ['orders', 'people'].map(of), as('any'))
  const { body } = await path.pull('any', '?batch=2')
  const [own, foreign] = body.partitions.map((each: Leased) => each.lease.id)
  const renewed = await baton.post('/renew', [own, foreign], as('orders'))
  expect(renewed.body.renewed).toMatchObject([{ leaseId: own }])
  expect(renewed.body.refused).toMatchObject([{ leaseId: foreign, code: 'lease_unknown' }])
})

test('a key does not return leases that are outside of later limits of the token', async () => {
  const file = await tokensFile({ tokens })
  const baton = await TestApp.open({ tokensFile: file })
  await baton.post('/call-back', ['orders', 'items'].map(of), as('any'))
  const headers = { ...as('two'), 'idempotency-key': 'once', prefer: 'batch=2' }
  expect(tablesOf(await baton.get('/pull', headers))).toHaveLength(2)
  const narrowed = tokens.map((token) =>
    token.name === 'two' ? { ...token, tables: ['results.items'] } : token,
  )
  await writeTokens(file, { tokens: narrowed })
  await until(async () => tablesOf(await baton.get('/pull', headers)).length === 1)
  expect(tablesOf(await baton.get('/pull', headers))).toEqual(['results.items'])
})
