import type { Throughput, ThroughputPoint } from '@baton/client'
import { STEP_MILLIS, THROUGHPUT_LEVELS } from '@baton/protocol/core'
import { styled } from '../terminal.ts'
import { bar } from './bar.ts'
import { count, counted } from './numbers.ts'
import { type Column, shown, table, tableWidth } from './table.ts'

const MARKS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
const LINE_WIDTH = 60

/** A sparkline of the whole period, and a row for each step in which partitions became done. */
export function throughputView(throughput: Throughput, width = tableWidth()): string {
  const { taskId, points } = throughput
  const sum = (measure: Measure) => points.reduce((total, point) => total + point[measure], 0)
  const measure: Measure = sum('records') > 0 ? 'records' : 'partitions'
  const whole = `${counted(sum('partitions'), 'partition')}, ${counted(sum('records'), 'record')} done`
  const most = points.reduce((largest, point) => Math.max(largest, point[measure]), 1)
  const columns: Column<ThroughputPoint>[] = [
    { title: throughput.step.toUpperCase(), of: ({ at }) => shortTime(at) },
    ...(points[0]?.level === undefined ? [] : [{ title: 'LEVEL', of: levelText, align: 'right' as const }]),
    { title: 'PARTITIONS', of: ({ partitions }) => count(partitions), align: 'right' },
    { title: 'RECORDS', of: ({ records }) => count(records), align: 'right' },
    {
      title: '',
      of: (point, room) => share(point[measure], most, room),
      picture: { most: 30, least: 8 },
    },
  ]
  return [
    `${styled('bold', shown(taskId))}: ${whole}`,
    `  ${shortTime(throughput.from)} ${sparkline(throughput, measure)} ${shortTime(throughput.to)}`,
    '',
    table(points, columns, width),
  ].join('\n')
}

type Measure = 'partitions' | 'records'

/** Omits the seconds if they are zero. */
const shortTime = (at: string): string => at.replace(/(:00)?\.\d+Z$/, 'Z')

const levelText = ({ level }: ThroughputPoint): string =>
  level === THROUGHPUT_LEVELS ? `${level} and up` : `${level ?? ''}`

/** An amount above zero is always visible. */
const share = (amount: number, most: number, room: number): string =>
  bar(amount === 0 ? 0 : Math.max(1, Math.round((amount / most) * room)), [
    { amount, mark: '█', style: 'green' },
  ])

/** A line of time cells of equal length. A cell without finished partitions is a dot. */
export function sparkline({ from, to, step, points }: Throughput, measure: Measure): string {
  const begin = Date.parse(from)
  const steps = Math.max(1, Math.ceil((Date.parse(to) - begin) / STEP_MILLIS[step]))
  const cells = Array<number>(Math.min(steps, LINE_WIDTH)).fill(0)
  for (const point of points) {
    const at = Math.floor((Date.parse(point.at) - begin) / STEP_MILLIS[step])
    const cell = Math.min(cells.length - 1, Math.floor((at / steps) * cells.length))
    cells[cell] = (cells[cell] ?? 0) + point[measure]
  }
  const most = Math.max(...cells)
  const mark = (value: number) =>
    value === 0 ? '·' : (MARKS[Math.ceil((value / most) * MARKS.length) - 1] ?? '·')
  return cells.map(mark).join('')
}
