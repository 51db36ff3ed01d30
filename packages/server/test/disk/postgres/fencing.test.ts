import { describe, expect, test } from 'vitest'
import type { SharedDisk } from '../../../src/handoff/disk.ts'
import { untouched } from '../../../src/handoff/partition.ts'
import { NotLeader, StoreUnavailable } from '../../../src/handoff/store.ts'
import { entry, lane, noRowChanges, row, task } from './samples.ts'
import { diskDatabases } from './support.ts'

const databases = diskDatabases()

describe('a node that takes over', () => {
  test('gets the entries that were appended and not flushed', async () => {
    const database = await databases.create()
    const first = await database.disk()
    const { last } = await first.open()
    await first.append(entry(last + 1, { newRows: [row(1)] }))
    await first.append(entry(last + 2))
    await first.flush({ ...noRowChanges(), nextIds: { task: 2, lane: 3, partition: 4, event: 5 } }, last + 1)
    const second = await database.disk()
    const opened = await second.open()
    expect(opened.unflushed).toEqual([`entry ${last + 2}`])
    expect(opened.last).toBe(last + 3)
    expect(opened.nextIds).toEqual({ task: 2, lane: 3, partition: 4, event: 5 })
    expect(Math.abs(opened.now - Date.now())).toBeLessThan(60_000)
  })

  test('is named in the head until it resigns', async () => {
    const database = await databases.create()
    const first = await database.disk({ node: { nodeId: 'one', url: 'http://one:7070' } })
    const before = await first.readLeaderRow()
    expect(before).toMatchObject({ term: null, leader: null })
    expect(before.secret.length).toBeGreaterThanOrEqual(32)
    await first.open()
    const second = await database.disk()
    const { term, leader, clusterId, secret } = await second.readLeaderRow()
    expect({ leader, clusterId, secret }).toEqual({
      leader: { nodeId: 'one', url: 'http://one:7070' },
      clusterId: before.clusterId,
      secret: before.secret,
    })
    await first.resign()
    expect(await second.readLeaderRow()).toMatchObject({ term, leader: null })
  })
})

describe('a deposed leader', () => {
  async function stale() {
    const database = await databases.create()
    const old = await database.disk()
    const { last } = await old.open()
    await old.append(entry(last + 1, { newRows: [row(1)] }))
    const leader = await database.disk()
    const opened = await leader.open()
    return { database, old, leader, last: last + 1, leaderLast: opened.last }
  }

  test('cannot append', async () => {
    const { database, old, leader, last, leaderLast } = await stale()
    await expect(old.append(entry(last + 1, { body: 'stale', newRows: [row(2)] }))).rejects.toThrow(
      StoreUnavailable,
    )
    await leader.append(entry(leaderLast + 1))
    await leader.append(entry(leaderLast + 2))
    expect(await database.query(`SELECT FROM baton.entry WHERE body = 'stale'`)).toEqual([])
    expect(await database.query('SELECT id FROM baton.partition')).toEqual([{ id: '1' }])
  })

  test.each([[[]], [[row(9)]]])(
    'cannot append behind its own entries, whatever number it takes',
    async (newRows) => {
      const { old, last } = await stale()
      await expect(old.append(entry(last + 2, { newRows }))).rejects.toThrow(NotLeader)
      // Nothing is tried before it is the leader again.
      await expect(old.append(entry(last + 1))).rejects.toThrow(NotLeader)
    },
  )

  test('cannot flush', async () => {
    const { database, old, last } = await stale()
    const rowChanges = { ...noRowChanges(), tasks: new Map([[1, task(1)]]) }
    await expect(old.flush(rowChanges, last)).rejects.toThrow(NotLeader)
    expect(await database.query('SELECT FROM baton.task')).toEqual([])
    expect(await database.query('SELECT number FROM baton.flushed')).toEqual([{ number: '0' }])
  })

  test('can neither stage nor unstage', async () => {
    const { database, old } = await stale()
    await expect(old.stage([row(5)])).rejects.toThrow(NotLeader)
    await expect(old.unstage({ first: 1, last: 1 })).rejects.toThrow(NotLeader)
    expect(await database.query('SELECT id FROM baton.partition')).toEqual([{ id: '1' }])
  })

  test('does not clear the name of the current leader', async () => {
    const { database, old, leader } = await stale()
    await old.resign()
    const other = await database.disk({ node: { nodeId: 'two', url: 'http://two' } })
    await other.open()
    await leader.resign()
    expect((await other.readLeaderRow()).leader).toEqual({ nodeId: 'two', url: 'http://two' })
  })

  test('is the leader again after a take-over', async () => {
    const { old, leader, leaderLast } = await stale()
    await expect(old.append(entry(2))).rejects.toThrow(StoreUnavailable)
    const { last, unflushed } = await old.open()
    expect(last).toBe(leaderLast + 1)
    expect(unflushed).toEqual([`entry ${leaderLast - 1}`])
    await old.append(entry(last + 1))
    await expect(leader.append(entry(leaderLast + 1))).rejects.toThrow(StoreUnavailable)
  })
})

describe('a flush', () => {
  test('is not carried out on a server that lost the entries', async () => {
    const database = await databases.create()
    const disk = await database.disk()
    const { last } = await disk.open()
    await disk.append(entry(last + 1))
    await disk.append(entry(last + 2))
    // As after a fail-over to a standby that was behind.
    await database.query(`DELETE FROM baton.entry WHERE number = ${last + 2}`)
    await expect(disk.flush(noRowChanges(), last + 2)).rejects.toThrow(NotLeader)
    await disk.open()
  })

  test('deletes entries that were flushed a while ago, and never the newest', async () => {
    const database = await databases.create()
    await database.query(
      `INSERT INTO baton.entry (number, term, body) SELECT n, 'before', 'x' FROM generate_series(1, 3000) n;
       UPDATE baton.flushed SET number = 2999`,
    )
    const disk = await database.disk()
    const { last, unflushed } = await disk.open()
    expect([last, unflushed]).toEqual([3001, ['x']])
    await disk.flush(noRowChanges(), last)
    const kept = 'SELECT min(number)::integer AS first, max(number)::integer AS last FROM baton.entry'
    expect(await database.query(kept)).toEqual([{ first: 2002, last: 3001 }])
    await disk.append(entry(last + 1))
    await disk.flush(noRowChanges(), last + 1)
    expect(await database.query(kept)).toEqual([{ first: 2003, last: 3002 }])
  })

  test('of the previous leader delays a take-over', async () => {
    const database = await databases.create()
    const old = await database.disk()
    const { last } = await old.open()
    await old.append(entry(last + 1, { newRows: [row(1)] }))
    const blocking = await database.session()
    await blocking.query('BEGIN; LOCK TABLE baton.lane IN EXCLUSIVE MODE')
    const rowChanges = {
      ...noRowChanges(),
      lanes: new Map([[1, lane(1, { tail: 1 })]]),
      partitions: new Map([[1, { ...untouched(), state: 'done' as const }]]),
    }
    const flushing = old.flush(rowChanges, last + 1)
    await untilWaiting(database.name, 1)
    const leader = await database.disk()
    const opening = leader.open()
    await untilWaiting(database.name, 2)
    await blocking.query('ROLLBACK')
    await flushing
    expect((await opening).unflushed).toEqual([])
    expect((await leader.partitionsById([1]))[0]?.state).toBe('done')
    await expect(old.flush(noRowChanges(), last + 1)).rejects.toThrow(NotLeader)
  })

  test('of a previous leader that is frozen is ended by a take-over', async () => {
    const database = await databases.create()
    const old = await database.disk()
    await old.open()
    const { term } = await old.readLeaderRow()
    const frozen = await database.session()
    await frozen.query(`BEGIN; SELECT FROM baton.head WHERE term = '${term}' FOR SHARE`)
    const ended = new Promise((resolve) => frozen.once('end', resolve))
    const told: string[] = []
    const log = { debug() {}, info() {}, error() {}, warn: (_: object, text: string) => void told.push(text) }
    const leader = await database.disk({ log })
    await leader.open()
    await ended
    // The answer to the termination may arrive after the take-over that it made possible.
    await expect
      .poll(() => told)
      .toContain('terminated a database session that blocked the take-over by this node')
  })
})

describe('a server that lost rows, and no entry', () => {
  // As a standby that was promoted without the last commits.
  test.each<[string, (disk: SharedDisk, last: number) => Promise<unknown>]>([
    ['an append', (disk, last) => disk.append(entry(last + 1))],
    ['an append with rows', (disk, last) => disk.append(entry(last + 1, { newRows: [row(9)] }))],
    ['the last piece of a flush', (disk, last) => disk.flush(noRowChanges(), last)],
    ['another piece of a call-back', (disk) => disk.stage([row(9)])],
    ['an unstage', (disk) => disk.unstage({ first: 5, last: 6 })],
  ])('refuses %s', async (_, write) => {
    for (const lost of ['a piece of a flush', 'a piece of a call-back', 'an unstage']) {
      const database = await databases.create()
      const disk = await database.disk()
      const { last } = await disk.open()
      await disk.append(entry(last + 1, { newRows: [row(1)] }))
      const before = await database.query('SELECT writes FROM baton.flushed')
      if (lost === 'a piece of a flush') await disk.flush(noRowChanges(), last)
      else if (lost === 'a piece of a call-back') await disk.stage([row(5)])
      else await disk.unstage({ first: 5, last: 6 })
      await database.query(`UPDATE baton.flushed SET writes = ${before[0]?.['writes']}`)
      await expect(write(disk, last + 1)).rejects.toThrow(NotLeader)
      expect((await disk.open()).unflushed).toEqual([`entry ${last + 1}`])
    }
  })

  test('is found in time: an entry that was appended after rows cannot outlast them', async () => {
    const database = await databases.create()
    const disk = await database.disk()
    const { last } = await disk.open()
    await disk.stage([row(1)])
    await disk.append(entry(last + 1))
    await database.query('UPDATE baton.flushed SET writes = 0')
    // Not asked again: a server without the rows would not have the entry before this one.
    await disk.append(entry(last + 2))
    await expect(disk.stage([row(2)])).rejects.toThrow(NotLeader)
  })

  test('is not suspected while a flush runs', async () => {
    const database = await databases.create()
    const disk = await database.disk()
    const { last } = await disk.open()
    await disk.append(entry(last + 1))
    await disk.stage([row(1)])
    const blocking = await database.session()
    await blocking.query('BEGIN; LOCK TABLE baton.task IN EXCLUSIVE MODE')
    const flushing = disk.flush({ ...noRowChanges(), tasks: new Map([[1, task(1)]]) }, last + 1)
    await untilWaiting(database.name, 1)
    const staging = disk.stage([row(2)])
    await disk.append(entry(last + 2))
    await blocking.query('ROLLBACK')
    await Promise.all([flushing, staging])
    await disk.append(entry(last + 3))
  })
})

describe('two nodes that take over at once', () => {
  test('are leaders one after the other', async () => {
    const database = await databases.create()
    const disks = await Promise.all(Array.from({ length: 4 }, () => database.disk()))
    const opened = await Promise.all(disks.map((disk) => disk.open()))
    expect(opened.map(({ last }) => last).sort()).toEqual([1, 2, 3, 4])
    const outcomes = await Promise.allSettled(
      disks.map((disk, at) => disk.append(entry((opened[at]?.last ?? 0) + 1))),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })
})

async function untilWaiting(database: string, sessions: number): Promise<void> {
  const waiting = () =>
    databases.server.query(
      `SELECT FROM pg_stat_activity WHERE datname = '${database}' AND application_name = 'baton' AND wait_event_type = 'Lock'`,
    )
  while ((await waiting()).length < sessions);
}
