import { describe, expect, test } from 'vitest'
import { newPartition, type StoredPartition } from '../../src/handoff/partition.ts'
import type { StoredState } from '../../src/handoff/rules/life-cycle.ts'
import { emptyTally, type TaskFacts } from '../../src/handoff/rules/task.ts'
import { PartitionWalk, ROWS_AT_A_TIME, ROWS_READ } from '../../src/handoff/views/partition-walk.ts'
import type { PartitionQuery } from '../../src/handoff/views/queries.ts'

const facts = { paused: false, cancelled: false, levelBarrier: false, openLevel: null } as TaskFacts

const rowOf = (state: StoredState, index: number): StoredPartition => ({
  ...newPartition({
    id: index + 1,
    lane: 1,
    index,
    recordCount: 1,
    computeTable: 's.t',
    spelling: null,
    calledBackAt: 0,
    extraFields: null,
    traceparent: null,
    inMixedLane: false,
  }),
  state,
  dueAt: state === 'leased' || state === 'delayed' ? 1 : null,
})

/** One lane whose partitions arrived by index, and their states. */
function laneOf(states: readonly StoredState[]) {
  const partitions = emptyTally()
  for (const state of states) partitions[state] += 1
  const cursor = states.findLastIndex((state) => state !== 'ready') + 1
  return { partitions, cursor, rows: states.map(rowOf) }
}

function walkThrough(states: readonly StoredState[], query: Partial<PartitionQuery>, lane = laneOf(states)) {
  const { partitions, cursor, rows } = lane
  const whole = { taskId: 'a', state: null, level: null, after: null, limit: 100, ...query }
  const walk = new PartitionWalk(facts, whole, new Set())
  let [rowsRead, reads] = [0, 0]
  for (let level = walk.nextLevel; level !== null; level = walk.nextLevel) {
    reads += 1
    const read = walk.enter(level === 0 ? { level, partitions, cursor, tail: rows.length } : undefined)
    if (read === null) continue
    const isBegun = ({ state, dueAt }: StoredPartition) => dueAt !== null || state === 'parked'
    const found = rows
      .filter((row) => {
        const at = read.by === 'index' ? row.index : row.id
        return (
          at > read.after && at <= read.last && (read.by === 'arrival' || read.state === null || isBegun(row))
        )
      })
      .slice(0, read.limit)
    rowsRead += found.length
    walk.take(found)
  }
  const { partitions: shown, next } = walk.page
  return { shown: shown.map(({ index }) => index), next, rowsRead, reads }
}

const everyAt = (size: number, states: Readonly<Record<number, StoredState>>, other: StoredState) =>
  Array.from({ length: size }, (_, index) => states[index] ?? other)

describe('a page of partitions in one state', () => {
  const done = (...indexes: number[]) =>
    everyAt(5000, Object.fromEntries(indexes.map((at) => [at, 'done'])), 'ready')

  test('reads no further than the last of them', () => {
    const page = walkThrough(done(0, 3, 7), { state: 'done' })
    expect(page).toMatchObject({ shown: [0, 3, 7], next: null, rowsRead: ROWS_AT_A_TIME })
  })

  test('continues over several reads until all are found', () => {
    const page = walkThrough(done(0, ROWS_AT_A_TIME + 1), { state: 'done' })
    expect(page).toMatchObject({ shown: [0, ROWS_AT_A_TIME + 1], next: null, rowsRead: 2 * ROWS_AT_A_TIME })
  })

  test('returns its position when the page is full, and when it has read enough', () => {
    const full = walkThrough(done(0, 3, 7), { state: 'done', limit: 2 })
    expect(full).toMatchObject({ shown: [0, 3], next: { part: 'all', level: 0, at: 3 } })
    const tired = walkThrough(done(0, 4999), { state: 'done' })
    expect(tired.shown).toEqual([0])
    expect(tired.next?.at).toBeLessThan(4999)
    expect(tired.rowsRead).toBeLessThanOrEqual(ROWS_READ)
  })

  test('does not know how many are left when it begins in the middle of the lane', () => {
    const after = { part: 'all', level: 0, at: 3 } as const
    const page = walkThrough(done(0, 3, 7).slice(0, 500), { state: 'done', after })
    expect(page).toMatchObject({ shown: [7], next: null, rowsRead: 496 })
  })

  test('finds what was handed out and is not finished without reading what waits or is done', () => {
    const states = everyAt(50_000, { 7: 'leased', 40000: 'parked', 49999: 'delayed' }, 'done')
    expect(walkThrough(states, { state: 'leased' })).toMatchObject({ shown: [7], next: null, rowsRead: 3 })
    expect(walkThrough(states, { state: 'delayed' })).toMatchObject({
      shown: [49_999],
      next: null,
      rowsRead: 3,
    })
  })
})

describe('a page that begins with what is unfinished', () => {
  test('does not read what is done before it', () => {
    const states = [
      ...everyAt(50_000, { 9: 'parked', 30000: 'leased' }, 'done'),
      'ready',
      'ready',
    ] as StoredState[]
    const { shown, rowsRead } = walkThrough(states, { order: 'unfinished', limit: 4 })
    expect(shown).toEqual([9, 30_000, 50_000, 50_001])
    expect(rowsRead).toBeLessThan(2 * ROWS_AT_A_TIME)
  })
})

describe('every combination of filters', () => {
  const states = Array.from({ length: 6000 }, (_, at): StoredState => {
    if (at >= 4000) return 'ready'
    return (['done', 'done', 'leased', 'done', 'parked', 'delayed'] as const)[at % 6] ?? 'done'
  })
  const lane = laneOf(states)
  const names = [null, 'a-0-17', 'a-0-1*', 'a-0-0*', 'a-0-*', 'a-*', 'a-1*', 'b*']
  const filters = (['ready', 'held', 'leased', 'parked', 'done', 'cancelled', null] as const).flatMap(
    (state) =>
      names.flatMap((name) =>
        ([null, 'unfinished'] as const).flatMap((order) =>
          [null, { first: 10, last: 4500 }].map((indexes) => ({
            state,
            name,
            order,
            level: indexes === null ? null : 0,
            indexes,
          })),
        ),
      ),
  )

  test.each(filters)('reads a bounded number of rows per page: %o', (filter) => {
    const isNamed = (index: number) =>
      filter.name === null ||
      (filter.name.endsWith('*')
        ? `a-0-${index}`.startsWith(filter.name.slice(0, -1))
        : `a-0-${index}` === filter.name)
    const expected = states.flatMap((state, index) => {
      const isWithin = filter.indexes === null || (index >= 10 && index <= 4500)
      return (filter.state ?? state) === state && isNamed(index) && isWithin ? [index] : []
    })
    const found: number[] = []
    let after: PartitionQuery['after'] = null
    do {
      const { shown, next, rowsRead, reads } = walkThrough(states, { ...filter, after, limit: 1000 }, lane)
      expect(rowsRead).toBeLessThanOrEqual(ROWS_READ)
      expect(reads).toBeLessThanOrEqual(50)
      found.push(...shown)
      after = next
    } while (after !== null)
    if (filter.order === null) expect(found).toEqual(expected)
    const isFinished = (index: number) => states[index] === 'done'
    expect(found.toSorted((a, b) => a - b)).toEqual(expected)
    const finished = found.filter(isFinished).length
    if (filter.order !== null) expect(found.slice(found.length - finished).every(isFinished)).toBe(true)
  })
})
