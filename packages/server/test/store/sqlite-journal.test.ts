import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { partitionStates } from '../../src/handoff/rules/life-cycle.ts'
import { Journal, type JournalEntry } from '../../src/store/sqlite/journal.ts'
import { migrations } from '../../src/store/sqlite/migrations/index.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import { Driver, nameOf, one, some } from './conformance/driver.ts'
import { TestClock, testPolicy } from './conformance/harness.ts'
import { SeparateStore } from './support/separate-store.ts'

let folder: string

beforeEach(async () => {
  folder = await testFolder()
})

async function open(): Promise<Driver> {
  const clock = new TestClock()
  const store = await openSqliteStore({ folder, policy: testPolicy, clock: clock.now })
  return new Driver({ store, reopen: async () => {}, dispose: () => store.close() }, clock)
}

/** Looks into the file, past the store. */
function look<Result>(at: (db: DatabaseSync) => Result): Result {
  const db = new DatabaseSync(join(folder, 'baton.db'), { readOnly: true })
  try {
    return at(db)
  } finally {
    db.close()
  }
}

const states = () =>
  Object.fromEntries(
    look((db) => db.prepare('SELECT state, count(*) AS partitions FROM partition GROUP BY state').all()).map(
      ({ state, partitions }) => [state, partitions],
    ),
  )

const nothing: JournalEntry = {
  admits: [],
  leases: [],
  finishes: [],
  levels: [],
  moves: [],
  lanes: [],
  tasks: [],
  paces: [],
  keys: [],
}

const noted = () => look((db) => new Journal(db).read()).length

describe('the journal', () => {
  test('a pull and its settle are noted there; their row is written when somebody looks', async () => {
    const store = await open()
    await store.callBack('a', some(0, 3))
    await store.settle((await store.pullOne()).leaseId)
    expect(states()).toEqual({ ready: 3 })
    expect(noted()).toBe(3)
    expect(await store.states('a')).toEqual({ '0-0': 'done', '0-1': 'ready', '0-2': 'ready' })
    expect(states()).toEqual({ ready: 2, done: 1 })
    expect(noted()).toBe(0)
    await store.store.close()
  })

  test('a pull that finds nothing writes nothing', async () => {
    const store = await open()
    await store.pull({})
    await store.pull({})
    expect(noted()).toBe(0)
    await store.store.close()
  })

  test('the key of a pull is noted there with its leases, and known after the process was killed', async () => {
    const killed = await SeparateStore.open(folder)
    const before = new Driver(
      { store: killed.store, reopen: async () => {}, dispose: async () => {} },
      new TestClock(),
    )
    await before.callBack('a', some(0, 5))
    const { partitions } = await before.pull({ batch: 2, key: 'k' })
    const keys = () => look((db) => db.prepare('SELECT key FROM pull_key').all()).length
    expect([partitions.length, keys()]).toEqual([2, 0])
    await killed.kill()
    const store = await open()
    const again = await store.pull({ batch: 4, key: 'k' })
    expect(again.repeated).toBe(true)
    expect(again.partitions.map(({ lease }) => lease?.id)).toEqual(partitions.map(({ lease }) => lease?.id))
    expect(keys()).toBe(1)
    await store.store.close()
  })

  test('an orderly end leaves everything in its place', async () => {
    const store = await open()
    await store.callBack('a', some(0, 3))
    const asked = Array.from({ length: 3 }, () => store.pullOne())
    await store.store.close()
    await Promise.all(asked)
    expect(states()).toEqual({ leased: 3 })
    expect(noted()).toBe(0)
  })

  test('it stays short: after some hundreds of partitions the rows are written', async () => {
    const store = await open()
    await store.callBack('a', some(0, 3000))
    const lengths: number[] = []
    for (let pulled = 0; pulled < 3000; pulled += 50) {
      const { partitions } = await store.pull({ batch: 50 })
      for (const { lease } of partitions) await store.settle(lease?.id ?? '')
      lengths.push(noted())
    }
    expect(Math.max(...lengths)).toBeLessThan(400)
    expect(states()['done']).toBeGreaterThan(2600)
    expect(Object.values(await store.states('a'))).toEqual(Array(3000).fill('done'))
    expect(await store.store.audit()).toEqual([])
    await store.store.close()
  })

  test('partitions behind the window are handed out in order while their rows still say held', async () => {
    const store = await open()
    await store.callBack('a', some(0, 1000))
    const names: string[] = []
    for (let pulls = 0; pulls < 20; pulls += 1)
      names.push(...(await store.pull({ batch: 20 })).partitions.map(nameOf))
    expect(names).toEqual(Array.from({ length: 400 }, (_, index) => `a-0-${index}`))
    expect(states()['held']).toBeGreaterThan(1000 - 400)
    await store.store.close()
    expect(states()['leased']).toBe(400)
  })

  test('more lanes than are kept in memory come and go, and nothing is lost between', async () => {
    const store = await open()
    const levels = Array.from({ length: 21_000 }, (_, level) => one(level, 0))
    await store.callBack('a', levels)
    const names: string[] = []
    for (let pulls = 0; pulls < 3; pulls += 1) {
      const { partitions } = await store.pull({ batch: 5 })
      names.push(...partitions.map(nameOf))
      for (const { lease } of partitions) await store.settle(lease?.id ?? '')
      await store.callBack('b', [one(30_000 + pulls, 0)])
    }
    expect(names).toEqual(Array.from({ length: 15 }, (_, level) => `a-${level}-0`))
    expect(await store.store.audit()).toEqual([])
    await store.store.close()
  })

  test('what is called back while pulls go on takes its place in the order, also before what was read ahead', async () => {
    const store = await open()
    await store.callBack('a', some(1, 300))
    expect(nameOf(await store.pullOne())).toBe('a-1-0')
    await store.callBack('b', [one(0, 0)])
    expect(nameOf(await store.pullOne())).toBe('b-0-0')
    expect(nameOf(await store.pullOne())).toBe('a-1-1')
    await store.store.close()
  })

  test('an entry that is longer than a page is read back whole', () => {
    const db = new DatabaseSync(join(folder, 'long.db'))
    for (const sql of migrations) db.exec(sql)
    const entry = (length: number) => ({
      ...nothing,
      leases: Array.from({ length }, (_, id) => [1, 'x'.repeat(16), null, 5, 4, id + 1] as const),
    })
    const journal = new Journal(db)
    for (const length of [1, 500, 80, 2]) journal.append(entry(length))
    expect(new Journal(db).read()).toEqual([1, 500, 80, 2].map(entry))
    journal.clear()
    expect(new Journal(db).read()).toEqual([])
    const next = new Journal(db)
    next.read()
    next.append(entry(3))
    expect(new Journal(db).read()).toEqual([entry(3)])
    db.close()
  })

  test('what an older version noted and did not write up is written up', async () => {
    const db = new DatabaseSync(join(folder, 'baton.db'))
    for (const sql of migrations.slice(0, 2)) db.exec(sql)
    db.exec(`PRAGMA user_version = 2;
      INSERT INTO task (id, task_id, state, level_barrier, first_call_back_at, last_call_back_at, ready_partitions, ready_records)
        VALUES (1, 'a', 'open', 0, 1, 1, 2, 20);
      INSERT INTO lane (id, task, level, ready_partitions, ready_records) VALUES (1, 1, 0, 2, 20);
      INSERT INTO compute_table (id, name) VALUES (1, 's.t');
      INSERT INTO partition (id, lane, idx, level, state, rank, record_count, compute_table, called_back_at)
        VALUES (1, 1, 0, 0, 'ready', 0, 10, 1, 1), (2, 1, 1, 0, 'ready', 10, 10, 1, 1);
      INSERT INTO lane_range (lane, first, last) VALUES (1, 0, 1);`)
    const counted = partitionStates.flatMap((state) =>
      state === 'ready' || state === 'leased' ? [1, 10] : [0, 0],
    )
    const entry = {
      admits: [],
      leases: [[1, 'abcdefghijklmnop', null, new TestClock().now() + 60_000, 5, 1]],
      finishes: [],
      levels: [[0, '0', '10']],
      lanes: [['20', '0', 0, 0, 0, ...counted, 1]],
      tasks: [['open', 0, 0, 0, null, 0, null, 1, 1, null, null, 0, 0, 0, 0, 0, ...counted, 1]],
      paces: [],
    }
    db.prepare('INSERT INTO journal (seq, entry) VALUES (1, ?)').run(JSON.stringify(entry))
    db.close()
    const store = await open()
    expect(await store.states('a')).toEqual({ '0-0': 'leased', '0-1': 'ready' })
    await store.settle('1-1-abcdefghijklmnop')
    expect(await store.states('a')).toEqual({ '0-0': 'done', '0-1': 'ready' })
    expect(await store.store.audit()).toEqual([])
    await store.store.close()
  })
})
