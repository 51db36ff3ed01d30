import { expect, test } from 'vitest'
import { decodeEntry, type Entry, encodeEntry } from '../../../src/handoff/engine/entry.ts'
import {
  type EventMessage,
  notAttempted,
  type StoredDelivery,
  type TaskEventTuple,
} from '../../../src/handoff/outbox.ts'
import { type PartitionStatus, untouched } from '../../../src/handoff/partition.ts'
import type { StoredTask } from '../../../src/handoff/stored.ts'
import { aTask, emptyEntry, tally } from '../../disk/conformance/builders.ts'

const NOW = 1_800_000_000_000

const leased: PartitionStatus = {
  ...untouched(),
  state: 'leased',
  leaseNumber: 2,
  attempts: 1,
  holder: 'worker-1',
  secret: 'abc',
  dueAt: NOW + 300_000,
  leasedAt: NOW,
  fencingToken: NOW + 1,
  history: [],
}

const done: PartitionStatus = {
  ...leased,
  state: 'done',
  outcome: 'done',
  dueAt: null,
  settledAt: NOW + 5,
  leasedAt: NOW - 20,
  history: null,
}

const failed: PartitionStatus = { ...leased, state: 'parked', outcome: 'failed', reason: 'out of memory' }

const entry = (partitions: Entry['partitions'], at = NOW): Entry => ({ ...emptyEntry, partitions, at })

test('partitions are decoded unchanged, whatever the time of their entry', () => {
  const partitions: Entry['partitions'] = [
    [1, untouched()],
    [2, leased],
    [3, done],
    [4, failed],
    [5, null],
  ]
  for (const at of [NOW, NOW - 1_000_000, 0])
    expect(decodeEntry(encodeEntry(entry(partitions, at)))).toEqual(entry(partitions, at))
})

const delivery = (event: number, facts: EventMessage['facts'], isKept = false): StoredDelivery => ({
  subscription: 'sub_1',
  event,
  taskId: 'a',
  at: NOW,
  message: { id: `evt_${event}`, type: 'task.done', generation: 1, facts },
  progress: isKept ? notAttempted('kept', NOW) : null,
})

const summary: TaskEventTuple = [2, 1, 1, 20, 10, 9, 10, 1, 3, NOW - 5, NOW]
const withDeliveries = (...deliveries: StoredDelivery[]): Entry => ({
  ...entry([]),
  outbox: { subscriptions: [], deliveries, changes: [] },
})

test('deliveries are decoded unchanged', () => {
  const level = { of: 'level', level: 0, partitions: 1, records: 10 } as const
  const written = withDeliveries(delivery(1, summary), delivery(2, summary, true), delivery(3, level))
  expect(decodeEntry(encodeEntry(written))).toEqual(written)
})

test('deliveries of tasks take everything from the change of the task', () => {
  const taskWith = (id: number, changes: Partial<StoredTask>): StoredTask =>
    aTask(id, {
      ...{
        state: 'done',
        generation: 2,
        firstCallBackAt: NOW - 5,
        lastCallBackAt: NOW - 4,
        finishedAt: NOW - 1,
      },
      ...{ attemptsWasted: 1, reportedDeclared: 30, reportedRecords: 29, mismatched: 1 },
      ...{ partitions: tally({ done: 2 }), records: tally({ done: 30 }), ...changes },
    })
  const tasks = [taskWith(1, {}), taskWith(2, { state: 'stalled', generation: 1, finishedAt: null })]
  const ended: TaskEventTuple = [2, 2, 0, 30, 30, 29, 30, 1, 3, NOW - 5, NOW - 1]
  const stalled: TaskEventTuple = [2, 2, 0, 30, 30, 29, 30, 1, 3, NOW - 5, NOW]
  const ofTask = (event: number, taskId: string, message: Omit<EventMessage, 'id'>, isKept = false) => ({
    ...delivery(event, message.facts, isKept),
    taskId,
    message: { id: `evt_${event}`, ...message },
  })
  const outbox = {
    subscriptions: [],
    deliveries: [
      ofTask(1, 'task-2', { type: 'task.stalled', generation: 1, facts: stalled }),
      ofTask(2, 'task-1', { type: 'task.done', generation: 2, facts: ended }),
      ofTask(3, 'task-1', { type: 'task.done', generation: 2, facts: ended }, true),
    ],
    changes: [],
  }
  const written = { ...entry([]), tasks, outbox }
  expect(decodeEntry(encodeEntry(written))).toEqual(written)
})
