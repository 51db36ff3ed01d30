import { expect, test } from 'vitest'
import { decodeEntry, type Entry, encodeEntry } from '../../../src/handoff/engine/entry.ts'
import { type PartitionStatus, untouched } from '../../../src/handoff/partition.ts'

const NOW = 1_800_000_000_000

const leased: PartitionStatus = {
  ...untouched(),
  state: 'leased',
  line: 'released',
  term: 2,
  attempts: 1,
  holder: 'worker-1',
  secret: 'abc',
  dueAt: NOW + 300_000,
  leasedAt: NOW,
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

const entry = (partitions: Entry['partitions'], at = NOW): Entry => ({
  tasks: [],
  lanes: [],
  levels: [],
  partitions,
  keys: [],
  pace: [],
  paceOver: [],
  ranges: [],
  tables: [],
  produced: [],
  instances: [],
  totals: [],
  nextIds: null,
  laneTables: [],
  tableTimes: [],
  outbox: null,
  throughput: [],
  at,
})

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

test('entries with names and absolute times, as they were first written, are read', () => {
  const rows = [
    [
      2,
      ...['leased', 'released', 2, 1, 0, 'worker-1', 'abc', null, NOW + 300_000, NOW, null, null, null, []],
    ],
    [
      3,
      ...['done', 'released', 2, 1, 0, 'worker-1', 'abc', 'done', null, NOW - 20, NOW + 5, null, null, null],
    ],
    [5],
  ]
  const body = JSON.stringify([[], [], [], rows, [], [], [], [], [], [], [], null, null, [], [], []])
  expect(decodeEntry(body)).toEqual(
    entry(
      [
        [2, leased],
        [3, done],
        [5, null],
      ],
      0,
    ),
  )
})
