import type { Throughput, ThroughputPoint, ThroughputStep } from '@baton/client'
import { STEP_MILLIS, THROUGHPUT_LEVELS, throughputSteps } from '@baton/protocol/core'
import type { Command } from '../command-line.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes, UsageError } from '../errors.ts'
import { count, counted } from '../show/numbers.ts'
import { bar } from '../show/progress.ts'
import { type Column, table, tableWidth } from '../show/table.ts'
import { answer, shown, styled } from '../terminal.ts'

/** The default period. */
const USUAL_MILLIS: Readonly<Record<ThroughputStep, number>> = { minute: 3_600_000, hour: 86_400_000 }

const time = (description: string, otherwise: string) =>
  ({ kind: 'text', placeholder: 'TIME', description, otherwise }) as const

export const throughput: Command = {
  operands: '[TASK]',
  operandCount: [0, 1],
  details:
    'Shows how many partitions and records of a task, or of all tasks, were done per minute or hour. The service keeps\n' +
    'minutes for one day and hours for as long as the partitions of finished tasks.',
  flags: {
    step: {
      kind: 'text',
      placeholder: 'STEP',
      choices: throughputSteps,
      default: 'minute',
      description: 'the length of one step',
    },
    from: time('begin at this time, such as 2026-03-01T12:00:00Z', 'an hour ago; with hours, a day ago'),
    to: time('end before this time', 'now'),
    'by-level': { kind: 'switch', description: 'show each level' },
    ...connectionFlags,
  },
  examples: [
    { line: 'baton throughput orders-2026-03', says: 'The last hour' },
    { line: 'baton throughput orders-2026-03 --step hour --by-level', says: 'The last day, level by level' },
  ],
  run: async (given) => {
    const step = given.textOrDefault('step') as ThroughputStep
    const to = given.text('to')
    const end = to === undefined ? Date.now() : Date.parse(to)
    const [taskId] = given.operands
    if (taskId === undefined && given.switch('by-level'))
      throw new UsageError('--by-level needs a task: levels of different tasks are not added up')
    const period = {
      step,
      // If the end is not a valid time, the service reports it.
      from: given.text('from') ?? (Number.isNaN(end) ? undefined : new Date(end - USUAL_MILLIS[step])),
      to,
    }
    const client = connect(given)
    const found =
      taskId === undefined
        ? await client.throughputOfAll(period)
        : await client.throughput(taskId, {
            ...period,
            by: given.switch('by-level') ? 'level' : undefined,
          })
    answer(given, found, () =>
      found.points.length > 0
        ? throughputView(found)
        : `${nameOf(found)}: no partition was done between ${found.from} and ${found.to}`,
    )
    return exitCodes.ok
  },
}

const nameOf = ({ taskId }: Throughput): string => (taskId === undefined ? 'all tasks' : shown(taskId))

const MARKS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
const LINE_WIDTH = 60

/** A sparkline of the whole period, and a row for each step in which partitions became done. */
export function throughputView(throughput: Throughput, width = tableWidth()): string {
  const { points } = throughput
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
      of: (point, cellWidth) => share(point[measure], most, cellWidth),
      picture: { most: 30, least: 8 },
    },
  ]
  return [
    `${styled('bold', nameOf(throughput))}: ${whole}`,
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
const share = (amount: number, most: number, width: number): string =>
  bar(amount === 0 ? 0 : Math.max(1, Math.round((amount / most) * width)), [
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
