import type { TaskSummary } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import { KnownTasks } from '../src/service/known-tasks.ts'

const task = (taskId: string, done: number, more: Partial<TaskSummary> = {}): TaskSummary =>
  ({
    taskId,
    state: 'open',
    generation: 1,
    records: { done },
    firstCallBackAt: '2026-03-01T12:00:00Z',
    ...more,
  }) as TaskSummary

const ticking = () => {
  let time = 0
  return () => ++time
}

const doneOf = (known: KnownTasks) =>
  [...known.all().values()].map(({ taskId, records }) => [taskId, records.done])

describe('the known state of tasks', () => {
  test('comes from an event that arrived during a request, otherwise from the answer', () => {
    const known = new KnownTasks(ticking())
    known.replace([task('a', 5), task('b', 5)], known.begin())
    known.update(task('b', 6))
    const begun = known.begin()
    known.update(task('a', 7))
    known.add([task('a', 6), task('b', 4)], begun)
    expect(doneOf(known)).toEqual([
      ['a', 7],
      ['b', 4],
    ])
  })

  test('is dropped when a complete list no longer contains the task', () => {
    const known = new KnownTasks(ticking())
    known.replace([task('a', 5), task('b', 5)], known.begin())
    const begun = known.begin()
    known.update(task('c', 0))
    known.replace([task('a', 5)], begun)
    expect(new Set(known.all().keys())).toEqual(new Set(['a', 'c']))
  })
})

describe('the number of newly finished records', () => {
  test('is the difference from what was known', () => {
    const known = new KnownTasks(ticking())
    known.replace([task('a', 5)], known.begin())
    expect([known.update(task('a', 8)), known.update(task('a', 8)), known.update(task('a', 9))]).toEqual([
      3, 0, 1,
    ])
  })

  test('counts all of a task that is new, and none of an old task that was never read', () => {
    const known = new KnownTasks(ticking())
    known.replace([task('a', 5)], known.begin())
    expect(known.update(task('quick', 40, { firstCallBackAt: '2026-03-01T12:00:01Z' }))).toBe(40)
    expect(known.update(task('old', 40, { firstCallBackAt: '2026-02-01T12:00:00Z' }))).toBe(0)
  })
})
