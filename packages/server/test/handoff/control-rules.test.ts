import { describe, expect, test } from 'vitest'
import type { FlagOrder } from '../../src/handoff/rules/control.ts'
import { type Effect, effectOf } from '../../src/handoff/rules/control-rules.ts'
import { emptyTally } from '../../src/handoff/rules/tally.ts'
import type { TaskEntry } from '../../src/handoff/rules/task-entry.ts'

const task = (changes: Partial<TaskEntry> = {}) =>
  ({
    paused: false,
    cancelled: false,
    sealed: false,
    expectedPartitions: null,
    levelBarrier: false,
    partitions: { ...emptyTally(), ready: 2, leased: 1, done: 4 },
    ...changes,
  }) as TaskEntry

const barrier = (enabled: boolean): FlagOrder => ({ verb: 'level-barrier', taskId: 'a', enabled })
const seal = (expectedPartitions: number | null): FlagOrder => ({
  verb: 'seal',
  taskId: 'a',
  expectedPartitions,
})

describe('what an order comes to', () => {
  test.each<[string, TaskEntry, FlagOrder, Effect]>([
    [
      'a pause overtakes what a resume left to do',
      task(),
      { verb: 'pause', taskId: 'a' },
      { changed: 1, flags: { paused: true }, drops: ['fill'], holds: true },
    ],
    [
      'a resume holds first what the pause did not get to',
      task({ paused: true }),
      { verb: 'resume', taskId: 'a' },
      { changed: 1, holdsFirst: true, flags: { paused: false }, begins: 'fill', advances: 'fill' },
    ],
    [
      'a resume again goes on with what the first has begun',
      task(),
      { verb: 'resume', taskId: 'a' },
      { changed: 0, advances: 'fill' },
    ],
    [
      'a cancel changes all that is not finished',
      task(),
      { verb: 'cancel', taskId: 'a' },
      {
        changed: 3,
        flags: { cancelled: true },
        drops: ['fill', 'rerun'],
        begins: 'cancel',
        advances: 'cancel',
      },
    ],
    [
      'a cancel again changes nothing more',
      task({ cancelled: true }),
      { verb: 'cancel', taskId: 'a' },
      { changed: 0, advances: 'cancel' },
    ],
    [
      'a barrier finds its place, and what is above it is held',
      task(),
      barrier(true),
      { changed: 1, flags: { levelBarrier: true, openLevel: null }, placesBarrier: true, holds: true },
    ],
    [
      'without a barrier all lanes fill',
      task({ levelBarrier: true }),
      barrier(false),
      { changed: 1, flags: { levelBarrier: false, openLevel: null }, begins: 'fill', advances: 'fill' },
    ],
    [
      'a seal that names no number keeps the one that was named',
      task({ sealed: true, expectedPartitions: 9 }),
      seal(null),
      { changed: 0, flags: { sealed: true, expectedPartitions: 9 } },
    ],
    [
      'a seal with another number is another seal',
      task({ sealed: true, expectedPartitions: 9 }),
      seal(10),
      { changed: 1, flags: { sealed: true, expectedPartitions: 10 } },
    ],
  ])('%s', (_, of, order, effect) => {
    expect(effectOf(of, order)).toEqual(effect)
  })
})
