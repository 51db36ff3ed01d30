import { stripVTControlCharacters } from 'node:util'
import type { PartitionRow } from '@baton/client'
import { expect, test } from 'vitest'
import { partitionTable, reasonText } from './task.ts'

const NOW = Date.parse('2026-03-01T12:00:00.000Z')
const NARROW = 80

const row = (index: number, leaseState: Partial<PartitionRow>): PartitionRow => ({
  taskId: 'orders',
  computeTableName: 'results.orders',
  partition_name: `orders-0-${index}`,
  record_count: 25_000,
  priorityLevel: 0,
  state: 'ready',
  attempts: 1,
  holder: null,
  leaseExpiresAt: null,
  readyAt: null,
  lastReason: null,
  reportedRecords: null,
  calledBackAt: '2026-03-01T11:00:00.000Z',
  settledAt: null,
  history: [],
  ...leaseState,
})

const shownIn = (width: number, ...rows: PartitionRow[]) =>
  stripVTControlCharacters(partitionTable(rows, width, NOW)).split('\n')

test('a lease is shown with its holder and end, a back-off with its end', () => {
  const leased = row(0, { state: 'leased', holder: 'loader-7', leaseExpiresAt: '2026-03-01T12:04:30.000Z' })
  const delayed = row(1, { state: 'delayed', readyAt: '2026-03-01T12:00:12.000Z', lastReason: 'locked' })
  expect(shownIn(100, leased, delayed)).toEqual([
    'PARTITION   STATE    RECORDS  ATTEMPTS  HOLDER    LEASE ENDS  READY   LAST REASON',
    'orders-0-0  leased    25,000         1  loader-7  in 4m 30s',
    'orders-0-1  delayed   25,000         1                        in 12s  locked',
  ])
})

test('a column without values is omitted', () => {
  expect(shownIn(NARROW, row(0, {}))).toEqual([
    'PARTITION   STATE  RECORDS  ATTEMPTS',
    'orders-0-0  ready   25,000         1',
  ])
})

test('fields beyond the contract have a column', () => {
  const kept = row(0, { fields: { snapshot: 's3://results/0-0', shard: 3 } })
  expect(shownIn(100, kept, row(1, {}))).toEqual([
    'PARTITION   STATE  RECORDS  ATTEMPTS  FIELDS',
    'orders-0-0  ready   25,000         1  snapshot=s3://results/0-0 shard=3',
    'orders-0-1  ready   25,000         1',
  ])
})

test('the terminal shows the last line of a long reason, and more if it fits', () => {
  const lastReason = `exit code 1: Traceback (most recent call last):\n${'  File "load.py"\n'.repeat(9)}ValueError: no such table\n`
  const parked = row(0, { state: 'parked', lastReason })
  expect(shownIn(NARROW, parked)[1]).toBe(
    'orders-0-0  parked   25,000         1  … ValueError: no such table',
  )
  const [, wide = ''] = shownIn(Number.POSITIVE_INFINITY, parked)
  expect(wide).toContain('exit code 1: Traceback (most recent call last): · File')
  expect(wide).toMatch(/ValueError: no such table$/)
})

const traceback =
  'exit code 1: Traceback (most recent call last):\n  File "load.py", line 3, in <module>\nValueError: no such table\n\n'

test.each([
  [
    traceback,
    Number.POSITIVE_INFINITY,
    'exit code 1: Traceback (most recent call last): · File "load.py", line 3, in <module> · ValueError: no such table',
  ],
  [traceback, 80, '… ValueError: no such table'],
  [traceback, 15, '… ValueError: …'],
  ['exit code 1: table is locked', 80, 'exit code 1: table is locked'],
  ['exit code 1: table is locked', 20, 'exit code 1: table …'],
  ['no\u0007 such table\r\n', 80, 'no· such table'],
  ['', 80, ''],
])('the reason %j is shortened to %d columns', (reason, width, text) => {
  expect(reasonText(reason, width)).toBe(text)
})
