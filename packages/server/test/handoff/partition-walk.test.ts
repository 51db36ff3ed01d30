import { describe, expect, test } from 'vitest'
import type { PartitionState } from '../../src/handoff/rules/life-cycle.ts'
import { emptyTally, type TaskFacts } from '../../src/handoff/rules/task.ts'
import { PartitionWalk, ROWS_AT_A_TIME, ROWS_READ } from '../../src/handoff/views/partition-walk.ts'
import type { PartitionDetails, PartitionQuery } from '../../src/handoff/views/queries.ts'

const facts = { paused: false, cancelled: false, levelBarrier: false, openLevel: null } as TaskFacts

/** One lane, and the states of its partitions by their index. */
function walkThrough(states: readonly PartitionState[], query: Partial<PartitionQuery>, exact = true) {
  const partitions = emptyTally()
  for (const state of states) partitions[state] += 1
  const rows = states.map((state, index) => ({ index, state }) as PartitionDetails)
  const walk = new PartitionWalk(
    facts,
    { taskId: 'a', state: null, level: null, after: null, limit: 100, ...query },
    exact,
  )
  let rowsRead = 0
  for (let level = walk.nextLevel; level !== null; level = walk.nextLevel) {
    const read = walk.enter(level === 0 ? { level, partitions } : undefined)
    if (read === null) continue
    const found = rows.filter(({ index }) => index > read.after).slice(0, read.limit)
    rowsRead += found.length
    walk.take(found)
  }
  const { partitions: shown, next } = walk.page
  return { shown: shown.map(({ index }) => index), next, rowsRead }
}

describe('a page of partitions in one state', () => {
  const leasedAt = (indexes: readonly number[], size = 5000): PartitionState[] =>
    Array.from({ length: size }, (_, index) => (indexes.includes(index) ? 'leased' : 'ready'))

  test('reads no further than the last of them', () => {
    const page = walkThrough(leasedAt([0, 3, 7]), { state: 'leased' })
    expect(page).toEqual({ shown: [0, 3, 7], next: null, rowsRead: ROWS_AT_A_TIME })
  })

  test('continues over several reads until all are found', () => {
    const page = walkThrough(leasedAt([0, ROWS_AT_A_TIME + 1]), { state: 'leased' })
    expect(page).toEqual({ shown: [0, ROWS_AT_A_TIME + 1], next: null, rowsRead: 2 * ROWS_AT_A_TIME })
  })

  test('returns its position when the page is full, and when it has read enough', () => {
    const full = walkThrough(leasedAt([0, 3, 7]), { state: 'leased', limit: 2 })
    expect(full).toMatchObject({ shown: [0, 3], next: { level: 0, index: 3 } })
    const tired = walkThrough(leasedAt([0, 4999]), { state: 'leased' })
    expect(tired.shown).toEqual([0])
    expect(tired.next?.index).toBeLessThan(4999)
    expect(tired.rowsRead).toBeLessThanOrEqual(ROWS_READ)
  })

  test('does not know how many are left when it begins in the middle of the lane', () => {
    const page = walkThrough(leasedAt([0, 3, 7], 500), { state: 'leased', after: { level: 0, index: 3 } })
    expect(page).toEqual({ shown: [7], next: null, rowsRead: 496 })
  })

  test('continues where the counts may lag behind the rows', () => {
    expect(walkThrough(leasedAt([0, 3, 7], 500), { state: 'leased' }, false).rowsRead).toBe(500)
  })
})
