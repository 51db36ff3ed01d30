import type { Throughput } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { sparkline, throughputView } from './throughput.ts'

const hour = (minutes: Record<number, [partitions: number, records: number]>): Throughput => ({
  taskId: 'orders-2026-03',
  step: 'minute',
  from: '2026-03-01T11:00:00.000Z',
  to: '2026-03-01T12:00:00.000Z',
  points: Object.entries(minutes).map(([minute, [partitions, records]]) => ({
    at: `2026-03-01T11:${minute.padStart(2, '0')}:00.000Z`,
    partitions,
    records,
  })),
})

describe('the chart line', () => {
  test('has a mark for each minute, by its share of the busiest', () => {
    const line = sparkline(hour({ 0: [1, 10], 1: [2, 80], 59: [1, 40] }), 'records')
    expect(line).toBe(`▁█${'·'.repeat(57)}▄`)
  })

  test('puts several minutes into one mark if there are many', () => {
    const day = {
      ...hour({ 0: [1, 0], 30: [1, 0], 59: [2, 0] }),
      from: '2026-02-28T12:00:00.000Z',
    }
    expect(sparkline(day, 'partitions')).toBe(`${'·'.repeat(57)}▄▄█`)
  })
})

test('the view sums up, and has a row for each step in which something became done', () => {
  expect(throughputView(hour({ 0: [1, 1000], 59: [2, 500] }), 80)).toBe(
    [
      'orders-2026-03: 3 partitions, 1,500 records done',
      `  2026-03-01T11:00Z █${'·'.repeat(58)}▄ 2026-03-01T12:00Z`,
      '',
      'MINUTE             PARTITIONS  RECORDS',
      `2026-03-01T11:00Z           1    1,000  ${'█'.repeat(30)}`,
      `2026-03-01T11:59Z           2      500  ${'█'.repeat(15)}`,
    ].join('\n'),
  )
})

test('if all counts are zero, partitions are drawn; the highest levels are labelled as several', () => {
  const { points, ...rest } = hour({ 5: [4, 0] })
  const [point] = points
  if (point === undefined) throw new Error('there is no point')
  const view = throughputView(
    {
      ...rest,
      points: [
        { ...point, level: 2 },
        { ...point, level: 16 },
      ],
    },
    90,
  )
  expect(view.split('\n').slice(3)).toEqual([
    'MINUTE                 LEVEL  PARTITIONS  RECORDS',
    `2026-03-01T11:05Z          2           4        0  ${'█'.repeat(30)}`,
    `2026-03-01T11:05Z  16 and up           4        0  ${'█'.repeat(30)}`,
  ])
})
