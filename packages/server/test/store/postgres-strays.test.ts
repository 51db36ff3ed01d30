import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import type { Policy } from '../../src/handoff/rules/policy.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { dropStraysInFront } from '../../src/store/postgres/queues/strays.ts'
import { WINDOW } from '../../src/store/postgres/windows/lanes.ts'
import { Driver, nameOf, some } from './conformance/driver.ts'
import { HOUR, MINUTE, TestClock, testPolicy } from './conformance/harness.ts'

/**
 * A claim that races a hold and a fill at the same rank leaves a place in the queue of what is ready,
 * and its node may die before it removes it. Here such places are written into the database by hand.
 */
let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.dispose())

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

class Scene extends Driver {
  database = ''

  /**
   * A place for each partition that meets the condition, at the rank it has or had last, or at a given one. Those that
   * wait now were somewhere else in between, which made it a place of an earlier stay.
   */
  async plant(condition: string, rank = 'coalesce(p.rank, 0)'): Promise<number> {
    const age = condition.includes("'held'") ? 1 : 0
    const rows = await server.query(
      `INSERT INTO baton.ready SELECT p.level, ${rank}, p.id, p.lane, l.task, p.stay - ${age}
       FROM baton.partition p JOIN baton.lane l ON l.id = p.lane WHERE ${condition} RETURNING id`,
      this.database,
    )
    return rows.length
  }

  /** Places of partitions that are not ready, or not there. */
  async strays(): Promise<number> {
    const rows = await server.query(
      `SELECT FROM baton.ready r LEFT JOIN baton.partition p ON p.id = r.id AND p.state = 'held' AND p.stay = r.stay
       WHERE p.id IS NULL`,
      this.database,
    )
    return rows.length
  }

  /** What is pulled until nothing comes, by name. */
  async names(batch: number, inTransaction: boolean): Promise<string[]> {
    const names: string[] = []
    while (true) {
      const { partitions } = await this.pull({ batch, records: inTransaction ? 1_000_000_000 : null })
      if (partitions.length === 0) return names
      names.push(...partitions.map(nameOf))
    }
  }
}

async function scene(policy: Partial<Policy> = {}): Promise<Scene> {
  const clock = new TestClock()
  const { name, url } = await server.borrowDatabase()
  const store = await openPostgresStore({ url, policy: { ...testPolicy, ...policy }, clock: clock.now })
  const opened = new Scene({ store, reopen: async () => {}, dispose: async () => {} }, clock)
  opened.database = name
  closing.push(async () => {
    const findings = await store.audit()
    await store.close()
    await server.giveBack(name)
    expect(findings).toEqual([])
  })
  return opened
}

const indexes = (first: number, count: number) =>
  Array.from({ length: count }, (_, at) => `a-0-${first + at}`).toSorted()

test('who looks for stray places hides none from those who pull', async () => {
  const store = await scene()
  await store.callBack('a', [...some(0, 3), ...some(1, 3)])
  await store.pull()
  expect(await store.plant("p.state = 'leased'", '-1')).toBe(1)
  const client = new pg.Client({ connectionString: server.url(store.database) })
  await client.connect()
  await client.query('BEGIN')
  expect((await client.query(dropStraysInFront.text)).rowCount).toBe(1)
  expect((await store.pull({ batch: 2 })).partitions.map(nameOf)).toEqual(['a-0-1', 'a-0-2'])
  await client.query('COMMIT')
  await client.end()
  expect(await store.strays()).toBe(0)
})

describe.each([
  ['in one statement', false],
  ['in a transaction', true],
])('pulls %s pass stray places over', (_, keyed) => {
  test.each(['coalesce(p.rank, 0)', '-1', '1000000000'])(
    'of what is leased and done, at rank %s',
    async (rank) => {
      const store = await scene()
      await store.callBack('a', some(0, 40))
      const { partitions } = await store.pull({ batch: 10 })
      for (const { lease } of partitions.slice(0, 5)) expect(await store.settle(lease?.id ?? '')).toBeNull()
      expect(await store.plant("p.state IN ('leased', 'done')", rank)).toBe(10)

      const { partitions: full } = await store.pull({ batch: 7, key: keyed ? 'first' : null })
      expect(full).toHaveLength(7)
      expect([...full.map(nameOf), ...(await store.names(7, keyed))].toSorted()).toEqual(indexes(10, 30))
      expect(await store.strays()).toBe(0)
      for (const { lease } of partitions.slice(5)) expect(await store.settle(lease?.id ?? '')).toBeNull()
      expect((await store.task('a')).facts.partitions).toMatchObject({ done: 10, leased: 30, ready: 0 })
    },
  )

  test.each(['p.idx', '-1', '1000000000'])('of what is held behind a window, at rank %s', async (rank) => {
    const store = await scene()
    await store.callBack('a', some(0, WINDOW + 200))
    expect(await store.plant("p.state = 'held' AND p.id IN (SELECT id FROM baton.held)", rank)).toBe(200)
    expect((await store.names(100, keyed)).toSorted()).toEqual(indexes(0, WINDOW + 200))
    expect(await store.strays()).toBe(0)
  })

  test('of what is held because its task is paused, at the rank that it gets again', async () => {
    const store = await scene()
    await store.callBack('a', some(0, 20))
    const ranks = await server.query('SELECT id, rank FROM baton.ready', store.database)
    await store.control({ verb: 'pause', taskId: 'a' })
    await store.tidyAll()
    const rankOf = `CASE p.id ${ranks.map(({ id, rank }) => `WHEN ${id} THEN ${rank}`).join(' ')} END`
    expect(await store.plant("p.state = 'held'", rankOf)).toBe(20)
    expect(await store.names(7, keyed)).toEqual([])
    await store.control({ verb: 'resume', taskId: 'a' })
    await store.tidyAll()
    expect((await store.names(7, keyed)).toSorted()).toEqual(indexes(0, 20))
    expect(await store.strays()).toBe(0)
  })
})

test('a delivery at most once passes them over as well', async () => {
  const store = await scene({ delivery: 'at-most-once' })
  await store.callBack('a', some(0, 10))
  await store.pull({ batch: 5 })
  expect(await store.plant("p.state = 'done'")).toBe(5)
  expect((await store.names(3, false)).toSorted()).toEqual(indexes(5, 5))
  expect(await store.strays()).toBe(0)
})

test('what is given back gets its place although a stray one is there', async () => {
  const store = await scene()
  await store.callBack('a', some(0, 4))
  const leases = (await store.pull({ batch: 4 })).partitions.map(({ lease }) => lease?.id ?? '')
  const [released = '', undone = '', failed = ''] = leases
  expect(await store.plant("p.state = 'leased'")).toBe(4)
  expect(await store.settle(released, { outcome: 'released' })).toBeNull()
  expect(await store.undo(undone)).toBe(1)
  expect(await store.settle(failed, { outcome: 'failed' })).toBeNull()
  expect((await store.pull({ batch: 4 })).partitions).toHaveLength(2)
  // Those two run again; that pull came across the place of the last of the four, and removed it.
  expect(await store.plant("p.state = 'leased'")).toBe(3)
  expect(await store.strays()).toBe(3)
  await store.pass(HOUR)
  await store.pass(HOUR)
  expect((await store.names(4, false)).toSorted()).toEqual(indexes(0, 4))
  expect(await store.strays()).toBe(0)
})

test('the roller removes them while there is other work', async () => {
  const store = await scene()
  await store.callBack('a', some(0, 200))
  const { partitions } = await store.pull({ batch: 10 })
  for (const { lease } of partitions.slice(0, 5)) await store.settle(lease?.id ?? '')
  expect(await store.plant("p.state IN ('leased', 'done')")).toBe(10)
  for (let turn = 0; turn < 40; turn += 1) {
    await store.pullOne()
    await store.task('a')
  }
  expect(await store.strays()).toBe(0)
})

test('a task that is cancelled is done with in spite of them', async () => {
  const store = await scene()
  await store.callBack('a', some(0, 20))
  await store.pull({ batch: 5 })
  const done = await store.pullOne()
  await store.settle(done.leaseId)
  expect(await store.plant("p.state IN ('leased', 'done')")).toBe(6)
  await store.control({ verb: 'cancel', taskId: 'a' })
  for (let turn = 0; turn < 10; turn += 1) await store.tidy()
  expect((await store.tidy()).more).toBe(false)
  expect(await store.strays()).toBe(0)
  await store.pass(HOUR)
})

test('one that outlives its partition is removed by a pull that finds nothing else', async () => {
  const store = await scene()
  await store.callBack('a', some(0, 3))
  for (const { lease } of (await store.pull({ batch: 3 })).partitions) await store.settle(lease?.id ?? '')
  expect(await store.plant("p.state = 'done'")).toBe(3)
  store.clock.advance(MINUTE)
  await store.tidyAll(0)
  expect(await store.partitions('a')).toEqual([])
  expect(await store.names(3, false)).toEqual([])
  expect(await store.strays()).toBe(0)
})

test('a second place of what is ready counts once when its lane closes', async () => {
  const store = await scene()
  await store.callBack('a', some(0, 10))
  expect(await store.plant("p.state = 'held'", 'p.rank + 1')).toBe(10)
  await store.control({ verb: 'pause', taskId: 'a' })
  await store.tidyAll()
  expect((await store.task('a')).facts.partitions).toMatchObject({ held: 10, ready: 0 })
  await store.control({ verb: 'resume', taskId: 'a' })
  expect((await store.names(3, false)).toSorted()).toEqual(indexes(0, 10))
  expect(await store.strays()).toBe(0)
})

test('a lease that is still listed after it was settled is not due for ever', async () => {
  const store = await scene()
  await store.callBack('a', some(0, 3))
  const leases = (await store.pull({ batch: 3 })).partitions.map(({ lease }) => lease?.id ?? '')
  await server.query('CREATE TABLE listed AS SELECT * FROM baton.due', store.database)
  for (const leaseId of leases) expect(await store.settle(leaseId)).toBeNull()
  // Whoever looks has the sets brought up to date first.
  await store.task('a')
  await server.query('INSERT INTO baton.due SELECT * FROM listed; DROP TABLE listed', store.database)
  expect(await store.pass(HOUR)).toMatchObject({ expired: 0, woken: 0, nextDueInMillis: null })
  expect((await store.task('a')).facts.partitions).toMatchObject({ done: 3, ready: 0, leased: 0 })
})

test('leases of one pull are one row until the last of them has ended, whichever way they end', async () => {
  const store = await scene()
  await store.callBack('a', some(0, 5))
  const leases = (await store.pull({ batch: 5 })).partitions.map(({ lease }) => lease?.id ?? '')
  const [first = '', second = '', third = '', ...others] = leases
  const sets = async () => {
    await store.task('a')
    return server.query('SELECT delayed, remaining FROM baton.due ORDER BY delayed, due_at', store.database)
  }
  expect(await sets()).toEqual([{ delayed: false, remaining: 5 }])
  expect(await store.settle(first)).toBeNull()
  expect(await store.settle(second, { outcome: 'released' })).toBeNull()
  expect(await sets()).toEqual([{ delayed: false, remaining: 3 }])
  expect(await store.settle(third, { outcome: 'failed' })).toBeNull()
  expect(await sets()).toEqual([
    { delayed: false, remaining: 2 },
    { delayed: true, remaining: 1 },
  ])
  for (const leaseId of others) expect(await store.settle(leaseId)).toBeNull()
  expect(await sets()).toEqual([{ delayed: true, remaining: 1 }])
})

test('what goes back to waiting while its task is cancelled is cancelled after all', async () => {
  const store = await scene()
  await store.callBack('a', some(0, 3))
  const { leaseId } = await store.pullOne()
  const other = new pg.Client({ connectionString: server.url(store.database) })
  await other.connect()
  await other.query('BEGIN')
  await other.query('SELECT FROM baton.due FOR UPDATE')
  // It has read that the task goes on, and waits for the place of its lease.
  const releasing = store.settle(leaseId, { outcome: 'released' })
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = '${store.database}' AND wait_event_type = 'Lock'`
  while ((await server.query(waiting)).length === 0);
  await store.control({ verb: 'cancel', taskId: 'a' })
  await other.query('COMMIT')
  await other.end()
  expect(await releasing).toBeNull()
  await store.tidyAll()
  const rows = await server.query('SELECT DISTINCT state FROM baton.partition', store.database)
  expect(rows).toEqual([{ state: 'cancelled' }])
})
