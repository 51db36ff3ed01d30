import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { ForgetfulPooler } from '../../../../test/postgres/support/forgetful-pooler.ts'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { HandOff } from '../../src/handoff/hand-off.ts'
import type { Policy } from '../../src/handoff/rules/policy.ts'
import { type Store, StoreRefused, StoreUnavailable } from '../../src/handoff/store.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { sessionSettings } from '../../src/store/postgres/session/session-settings.ts'
import { callBackOrder, leaseOf, pullOrder, settlement, some } from './conformance/driver.ts'
import { testPolicy } from './conformance/harness.ts'

const nothing = { settles: [], renews: [], undos: [], callBacks: [], pulls: [] }
const quiet = { debug() {}, info() {}, warn() {}, error() {} }

describe('several nodes on one database', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server.dispose())

  async function nodes(count: number, policy: Policy = testPolicy, url?: string): Promise<Store[]> {
    const shared = url ?? (await server.createDatabase()).url
    const stores = await Promise.all(
      Array.from({ length: count }, () => openPostgresStore({ url: shared, policy })),
    )
    onTestFinished(async () => {
      await Promise.all(stores.map((store) => store.close()))
    })
    return stores
  }

  function handOffOn(store: Store, instanceId: string): HandOff {
    const handOff = new HandOff({
      store,
      policy: testPolicy,
      retentionMillis: 1e9,
      node: { instanceId, version: '0' },
      log: quiet,
    })
    onTestFinished(() => handOff.stop())
    return handOff
  }

  test('five that start at once on an empty database agree on its schema', async () => {
    const stores = await nodes(5)
    for (const store of stores) await store.probe()
  })

  test('a schema newer than the program is refused by its number', async () => {
    const { name, url } = await server.createDatabase()
    await nodes(1, testPolicy, url)
    await server.query('UPDATE baton.schema_version SET version = 99', name)
    const opening = openPostgresStore({ url, policy: testPolicy })
    await expect(opening).rejects.toThrow(StoreRefused)
    await expect(opening).rejects.toThrow('version 99')
  })

  test('what became ready on one wakes a pull that waits on another', async () => {
    const [east, west] = (await nodes(2)) as [Store, Store]
    const waiting = handOffOn(east, 'east')
    // No upkeep runs here, so nothing but the hint can wake it.
    const pulled = waiting.pull({ instance: null, batch: 1, records: null, key: null, waitMillis: 20_000 })
    while (waiting.waitingPulls === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    await west.handOff({ ...nothing, callBacks: [callBackOrder('a', some(0, 1))] })
    expect((await pulled).partitions).toHaveLength(1)
  })

  test('a hint that got lost is made up for by looking around', async () => {
    const [store] = (await nodes(1)) as [Store]
    const deaf: Store = { ...store, close: () => store.close(), onHint: () => {} }
    const handOff = handOffOn(deaf, 'deaf')
    await handOff.start()
    const pulled = handOff.pull({ instance: null, batch: 1, records: null, key: null, waitMillis: 25_000 })
    while (handOff.waitingPulls === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    await store.handOff({ ...nothing, callBacks: [callBackOrder('a', some(0, 1))] })
    expect((await pulled).partitions).toHaveLength(1)
  })

  test('call-backs, pulls and settles of one task on all nodes at once: each partition once', async () => {
    const stores = await nodes(3, { ...testPolicy, levelBarrier: true })
    const rounds = Array.from({ length: 30 }, (_, round) => round)
    await Promise.all(
      rounds.map((round) =>
        stores[round % 3]?.handOff({
          ...nothing,
          callBacks: [callBackOrder('a', [...some(0, 20, {}, round * 20), ...some(1, 20, {}, round * 20)])],
        }),
      ),
    )
    const taken: string[] = []
    const work = async (store: Store) => {
      while (taken.length < 1200) {
        const { pulls } = await store.handOff({ ...nothing, pulls: [pullOrder({ batch: 7 })] })
        const given = pulls[0]?.partitions ?? []
        taken.push(...given.map(({ level, index }) => `${level}-${index}`))
        const settlements = given.map(({ lease }) => ({
          lease: leaseOf(lease?.id ?? ''),
          order: settlement(),
        }))
        const { settles } = await store.handOff({ ...nothing, settles: [{ instance: null, settlements }] })
        expect(settles[0]?.every((refused) => refused === null)).toBe(true)
      }
    }
    await Promise.all([...stores, ...stores].map(work))
    expect(new Set(taken).size).toBe(1200)
    expect(taken).toHaveLength(1200)
    // The barrier held: nothing of level 1 before the last of level 0.
    expect(taken.findIndex((name) => name.startsWith('1-'))).toBeGreaterThanOrEqual(600)
    for (const store of stores) expect((await store.task('a'))?.facts.partitions.done).toBe(1200)
    expect(await stores[0]?.audit()).toEqual([])
  })

  test('a node is seen from every other, and so is its end', async () => {
    const [east, west] = (await nodes(2)) as [Store, Store]
    await handOffOn(east, 'east').start()
    expect(await west.instance('east')).toMatchObject({ role: 'service', node: { draining: false } })
  })

  test('a twin of a keyed pull on another node is given the same leases', async () => {
    const [east, west] = (await nodes(2)) as [Store, Store]
    await east.handOff({ ...nothing, callBacks: [callBackOrder('a', some(0, 40))] })
    for (let round = 0; round < 10; round += 1) {
      const order = pullOrder({ batch: 3, key: `key-${round}` })
      const answers = await Promise.all(
        [east, west].map(async (store) => (await store.handOff({ ...nothing, pulls: [order] })).pulls[0]),
      )
      const ids = answers.map((answer) => answer?.partitions.map(({ lease }) => lease?.id).toSorted())
      expect(ids[0]).toHaveLength(3)
      expect(ids[1]).toEqual(ids[0])
      expect(answers.filter((answer) => answer?.repeated)).toHaveLength(1)
    }
  })

  test('counters are folded in without anybody asking for them', async () => {
    const { name, url } = await server.createDatabase()
    const [east, west] = (await nodes(2, testPolicy, url)) as [Store, Store]
    await east.handOff({ ...nothing, callBacks: [callBackOrder('a', some(0, 4))] })
    for (const store of [east, west]) {
      await store.handOff({ ...nothing, pulls: [pullOrder()] })
      const unfolded = async () => (await server.query('SELECT FROM baton.count_delta', name)).length
      while ((await unfolded()) > 0);
    }
    const [lane] = await server.query('SELECT leased_partitions::int AS leased FROM baton.lane', name)
    expect(lane).toEqual({ leased: 2 })
  })

  test('a key that another node writes while a pull with it is under way is not served twice', async () => {
    const { name, url } = await server.createDatabase()
    const [store] = (await nodes(1, testPolicy, url)) as [Store]
    await store.handOff({ ...nothing, callBacks: [callBackOrder('a', some(0, 4))] })
    const twin = new pg.Client({ connectionString: url })
    await twin.connect()
    onTestFinished(() => twin.end())
    // Committed neither when the pull looks for the key nor when it has claimed.
    await twin.query(`BEGIN; INSERT INTO baton.pull_key VALUES ('k', 9e15, '{}', '{}')`)
    const pulling = store.handOff({ ...nothing, pulls: [pullOrder({ batch: 2, key: 'k' })] })
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = '${name}' AND wait_event_type = 'Lock'`
    while ((await server.query(waiting)).length === 0);
    await twin.query('COMMIT')
    expect((await pulling).pulls).toEqual([{ partitions: [], repeated: true }])
    expect((await store.task('a'))?.facts.partitions).toMatchObject({ ready: 4, leased: 0 })
    expect(await store.audit()).toEqual([])
  })

  test('a statement that waited for a lock too long is run again, whichever statement tells', async () => {
    const { name, url } = await server.createDatabase()
    const [store] = (await nodes(1, testPolicy, url)) as [Store]
    await store.handOff({ ...nothing, callBacks: [callBackOrder('a', some(0, 4))] })
    const { pulls } = await store.handOff({ ...nothing, pulls: [pullOrder()] })
    const lease = leaseOf(pulls[0]?.partitions[0]?.lease?.id ?? '')
    const other = new pg.Client({ connectionString: url })
    await other.connect()
    onTestFinished(() => other.end())
    await other.query('BEGIN')
    await other.query('SELECT FROM baton.due FOR UPDATE')
    const failed = [{ lease, order: settlement({ outcome: 'failed' }) }]
    const asked = store.handOff({
      ...nothing,
      settles: [{ instance: null, settlements: failed }],
      pulls: [pullOrder()],
    })
    // The first try gives up after the five seconds that a session waits for a lock.
    const tries = new Set<unknown>()
    const waiting = `SELECT xact_start::text AS since FROM pg_stat_activity WHERE datname = '${name}' AND wait_event_type = 'Lock'`
    while (tries.size < 2) for (const { since } of await server.query(waiting)) tries.add(since)
    await other.query('COMMIT')
    expect(await asked).toMatchObject({ settles: [[null]], pulls: [{ repeated: false }] })
    expect(await store.audit()).toEqual([])
  }, 30_000)

  test('a pooler that hands out connections by transaction finds nothing left on them', async () => {
    const pooler = await ForgetfulPooler.start(server.port)
    onTestFinished(() => pooler.stop())
    const { url } = await server.createDatabase()
    const pooled = url.replace(`:${server.port}/`, `:${pooler.port}/`)
    const [store] = (await nodes(
      1,
      testPolicy,
      `${pooled}?pooling=transaction&listen=127.0.0.1:${server.port}`,
    )) as [Store]
    for (let round = 0; round < 5; round += 1) {
      await store.handOff({ ...nothing, callBacks: [callBackOrder('a', some(0, 3, {}, round * 3))] })
      const { pulls } = await store.handOff({
        ...nothing,
        pulls: [pullOrder({ batch: 3, key: `key-${round}` })],
      })
      const given = pulls[0]?.partitions ?? []
      expect(given).toHaveLength(3)
      const settlements = given.map(({ lease }) => ({ lease: leaseOf(lease?.id ?? ''), order: settlement() }))
      const { settles } = await store.handOff({ ...nothing, settles: [{ instance: null, settlements }] })
      expect(settles).toEqual([[null, null, null]])
    }
    expect((await store.task('a'))?.facts.partitions.done).toBe(15)
    expect(await store.audit()).toEqual([])
    expect(pooler.forgot).toBeGreaterThan(20)
  })
})

describe('a database that goes away', () => {
  test('is answered as unavailable until it is back, and then all goes on', async () => {
    const server = await PostgresServer.start()
    onTestFinished(() => server.dispose())
    const { url } = await server.createDatabase()
    const store = await openPostgresStore({ url, policy: testPolicy })
    onTestFinished(() => store.close())
    await store.handOff({ ...nothing, callBacks: [callBackOrder('a', some(0, 2))] })
    await server.crash()
    for (let request = 0; request < 3; request += 1) {
      const asked = store.handOff({ ...nothing, pulls: [pullOrder()] })
      await expect(asked).rejects.toThrow(StoreUnavailable)
    }
    await expect(store.probe()).rejects.toThrow(StoreUnavailable)
    await server.start()
    await store.probe()
    const { pulls } = await store.handOff({ ...nothing, pulls: [pullOrder({ batch: 5 })] })
    expect(pulls[0]?.partitions).toHaveLength(2)
    expect(await store.audit()).toEqual([])
  })

  test('a node cut off in the middle of a transaction loses its locks', async () => {
    const server = await PostgresServer.start()
    onTestFinished(() => server.dispose())
    const { url } = await server.createDatabase()
    const store = await openPostgresStore({ url, policy: testPolicy })
    onTestFinished(() => store.close())
    await store.handOff({ ...nothing, callBacks: [callBackOrder('a', some(0, 1))] })
    const { pulls } = await store.handOff({ ...nothing, pulls: [pullOrder()] })
    const lease = leaseOf(pulls[0]?.partitions[0]?.lease?.id ?? '')
    const cutOff = new pg.Client({ connectionString: url })
    cutOff.on('error', () => {})
    await cutOff.connect()
    await cutOff.query(sessionSettings)
    await cutOff.query('BEGIN')
    await cutOff.query('SELECT FROM baton.partition FOR UPDATE')
    // It says nothing more. Others wait for it, but not for ever.
    const settlements = [{ lease, order: settlement() }]
    const { settles } = await store.handOff({ ...nothing, settles: [{ instance: null, settlements }] })
    expect(settles).toEqual([[null]])
  })
})
