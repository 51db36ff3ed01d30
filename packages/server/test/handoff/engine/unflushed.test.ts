import { expect, test } from 'vitest'
import type { Entry } from '../../../src/handoff/engine/entry.ts'
import { inPieces, rowChangesOf, Unflushed } from '../../../src/handoff/engine/state/unflushed.ts'
import { ALL_TASKS } from '../../../src/handoff/engine/throughput.ts'
import { type PartitionStatus, statusOf, untouched } from '../../../src/handoff/partition.ts'
import type { StoredTask } from '../../../src/handoff/stored.ts'
import { noTotals } from '../../../src/handoff/views/queries.ts'
import { aTask, emptyEntry } from '../../disk/conformance/builders.ts'

const entry = (...partitions: [id: number, change: Partial<PartitionStatus>][]): Entry => ({
  ...emptyEntry,
  partitions: partitions.map(([id, change]) => [id, statusOf({ ...untouched(), ...change })]),
})

const states = (flushable: ReturnType<Unflushed['takeAll']>) =>
  flushable && {
    upTo: flushable.upTo,
    states: [...flushable.rowChanges.partitions].map(([id, status]) => [id, status?.state]),
  }

test('a partition that is finished soon after it was leased is written once', () => {
  const unflushed = new Unflushed()
  unflushed.add(entry([1, { state: 'leased' }], [2, { state: 'leased' }]), 1)
  expect(unflushed.takeOlder()).toBeNull()
  unflushed.add(entry([1, { state: 'done' }]), 2)
  // Entry 1 is flushed without its change of the first partition, which entry 2 has.
  expect(states(unflushed.takeOlder())).toEqual({ upTo: 1, states: [[2, 'leased']] })
  expect(states(unflushed.takeOlder())).toEqual({ upTo: 2, states: [[1, 'done']] })
  expect(unflushed.takeOlder()).toBeNull()
})

test('taking everything yields the last change of each row', () => {
  const unflushed = new Unflushed()
  unflushed.add(entry([1, { state: 'leased' }], [2, { state: 'leased' }]), 1)
  unflushed.takeOlder()
  unflushed.add(entry([1, { state: 'done' }]), 2)
  expect(states(unflushed.takeAll())).toEqual({
    upTo: 2,
    states: [
      [1, 'done'],
      [2, 'leased'],
    ],
  })
  expect(unflushed.takeAll()).toBeNull()
})

test('failures and totals of an entry are written even if a later entry changed the task', () => {
  const unflushed = new Unflushed()
  const failures = [
    {
      ...{ key: 'locked-1', outcome: 'failed' as const, reason: 'locked', count: 3, firstAt: 1, lastAt: 2 },
      parked: { partitions: 1, records: 10 },
    },
  ]
  const task = (changes: Partial<StoredTask>) => ({ ...entry(), tasks: [aTask(1, changes)] })
  const added = { instanceId: 'w', role: 'worker' as const, at: 1, lostUnlessSeenSince: null }
  const totals = [{ ...added, totals: { ...noTotals(), done: 2 } }]
  unflushed.add({ ...task({ failures }), totals }, 1)
  unflushed.takeOlder()
  unflushed.add({ ...task({ state: 'paused' }), totals }, 2)
  const older = unflushed.takeOlder()
  expect(older?.rowChanges.tasks.get(1)?.failures).toEqual(failures)
  expect(older?.rowChanges.totals.get('w')?.totals.done).toBe(2)
  const newer = unflushed.takeAll()
  expect(newer?.rowChanges.tasks.get(1)).toMatchObject({ state: 'paused', failures: null })
  expect(newer?.rowChanges.totals.get('w')?.totals.done).toBe(2)
})

test('done partitions are in one flush, summed by minute and by hour', () => {
  const unflushed = new Unflushed()
  const done = (minute: number, partitions: number): Entry => ({
    ...entry(),
    throughput: [{ task: 1, level: 0, minute, partitions, records: 10 * partitions }],
  })
  unflushed.add(done(61, 1), 1)
  unflushed.add(done(62, 2), 2)
  unflushed.takeOlder()
  unflushed.add(done(62, 4), 3)
  /** Of the task, and of all tasks together. */
  const rows = (step: 'minute' | 'hour', minute: number, partitions: number) =>
    [1, ALL_TASKS].map((task) => ({
      task,
      step,
      at: minute * 60_000,
      level: 0,
      partitions,
      records: 10 * partitions,
    }))
  expect([...(unflushed.takeOlder()?.rowChanges.throughput.values() ?? [])]).toEqual([
    ...rows('minute', 61, 1),
    ...rows('hour', 60, 3),
    ...rows('minute', 62, 2),
  ])
  expect([...(unflushed.takeAll()?.rowChanges.throughput.values() ?? [])]).toEqual([
    ...rows('minute', 62, 4),
    ...rows('hour', 60, 4),
  ])
})

test('a large flush is split into pieces: each row once, totals and the rest in the last', () => {
  const many = Array.from({ length: 25 }, (_, at): [number, Partial<PartitionStatus>] => [at + 1, {}])
  const totals = { ...noTotals(), done: 1 }
  const added = { instanceId: 'w', role: 'worker' as const, at: 0, totals, lostUnlessSeenSince: null }
  const rowChanges = rowChangesOf([{ ...entry(...many), tasks: [aTask(1)], totals: [added] }])
  const pieces = inPieces(rowChanges, 10)
  expect(pieces.map(({ partitions }) => partitions.size)).toEqual([9, 10, 6])
  expect(new Set(pieces.flatMap(({ partitions }) => [...partitions.keys()])).size).toBe(25)
  expect(pieces.map((piece) => piece.totals.size)).toEqual([0, 0, 1])
  expect(pieces.map(({ tasks }) => tasks.size)).toEqual([1, 0, 0])
  expect(inPieces(rowChanges, 26)).toEqual([rowChanges])
})

test('the tables of a task and of a lane count as rows, and are written in pieces, too', () => {
  const [FEW, MANY] = [100, 1000]
  const named = Array.from({ length: MANY }, (_, at) => `r.${at}`)
  const row = { lane: 1, cursor: 0, ready: 1, returned: 0, readyRecords: 1 }
  const laneTables = named.map((table) => ({ ...row, table }))
  const called = { ...entry(), tables: named.map((name): [number, string] => [1, name]), laneTables }
  const unflushed = new Unflushed()
  unflushed.add(called, 1)
  expect(unflushed.rows).toBeGreaterThanOrEqual(2 * MANY)
  const pieces = inPieces(rowChangesOf([called]), FEW)
  for (const piece of pieces)
    expect(piece.laneTables.size + (piece.tables.get(1)?.size ?? 0)).toBeLessThanOrEqual(FEW)
  expect(pieces.flatMap(({ tables }) => [...(tables.get(1) ?? [])])).toEqual(named)
  expect(pieces.flatMap((piece) => [...piece.laneTables.values()])).toEqual(laneTables)
})

test('an entry may have a range for each of very many partitions', () => {
  const ranges = Array.from({ length: 200_000 }, (_, at) => ({ lane: 1, first: 2 * at, last: 2 * at }))
  expect(rowChangesOf([{ ...entry(), ranges }]).ranges).toHaveLength(ranges.length)
})
