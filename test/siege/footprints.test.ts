import { describe, expect, test } from 'vitest'
import { footprintTable, growth, type Sample } from './support/footprints.ts'

const sample = (second: number, more: Partial<Sample> = {}): Sample => ({
  second,
  residentMb: 200,
  heapMb: 50,
  handles: 60,
  timers: 12,
  connections: 10,
  waitingPulls: 0,
  receivedBytes: 0,
  streams: 0,
  ...more,
})
const run = (moreAt: (second: number) => Partial<Sample>) =>
  Array.from({ length: 90 }, (_, second) => sample(second, moreAt(second)))

describe('growth', () => {
  test('is not reported while memory warms up, or goes up and down', () => {
    expect(growth(run((second) => ({ residentMb: Math.min(200, 100 + 10 * second) })))).toEqual([])
    expect(growth(run((second) => ({ heapMb: 40 + (second % 7) * 10 })))).toEqual([])
  })

  test.each([
    ['residentMb', (second: number) => ({ residentMb: 200 + 2 * second })],
    ['heapMb', (second: number) => ({ heapMb: 50 + second })],
    ['handles', (second: number) => ({ handles: 60 + Math.floor(second / 3) })],
    ['timers', (second: number) => ({ timers: 12 + Math.floor(second / 3) })],
  ])('is found in %s', (name, moreAt) => {
    expect(growth(run(moreAt))).toEqual([
      expect.stringMatching(new RegExp(`^${name} went from \\d+ to \\d+$`)),
    ])
  })
})

test('the table has the first sample, the last, and some in between', () => {
  const rows = footprintTable(run(() => ({})))
    .split('\n')
    .slice(2)
  expect(rows).toHaveLength(12)
  expect([rows[0], rows.at(-1)]).toEqual([
    '| 0 | 200 | 50 | 60 | 12 | 10 |',
    '| 89 | 200 | 50 | 60 | 12 | 10 |',
  ])
})
