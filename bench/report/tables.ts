import { median, spread } from '../harness/statistics.ts'
import type { Figure, FinishedScenario, Goal, Measurement, ScenarioReport } from './model.ts'

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

/** Three significant digits for small numbers, thousands separators for large ones. */
function short(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  if (size >= 100 || Number.isInteger(value)) return whole.format(value)
  return value.toFixed(size >= 10 ? 1 : 2)
}

export function medianAndSpread(values: readonly number[]): string {
  if (values.length === 0) return '–'
  const { median: middle, min, max } = spread(values)
  return values.length === 1 || min === max ? short(middle) : `${short(middle)} (${short(min)}–${short(max)})`
}

/** The median of one field over the rounds, or a dash where it was not measured. */
export function fieldMedian(
  measurements: readonly Measurement[],
  field: 'p50Ms' | 'p99Ms' | 'serverCpuSeconds' | 'serverRssMb' | 'clientCpuSeconds',
): string {
  const values = measurements.map((m) => m[field]).filter((value) => value !== undefined)
  return values.length === 0 ? '–' : short(median(values))
}

function goalText(goal: Goal | undefined): string {
  if (goal?.atLeast !== undefined) return `≥ ${short(goal.atLeast)}`
  if (goal?.atMost !== undefined) return `≤ ${short(goal.atMost)}`
  return ''
}

/** Goals are reported and never asserted: a slow machine must not fail a build. */
function goalMet({ goal, values }: Figure): string {
  if (!goal || values.length === 0) return ''
  const value = median(values)
  const met = value >= (goal.atLeast ?? Number.NEGATIVE_INFINITY) && value <= (goal.atMost ?? Infinity)
  return met ? 'met' : 'missed'
}

export interface Table {
  head: readonly string[]
  body: readonly (readonly string[])[]
}

function rateTable({ rows }: ScenarioReport): Table | undefined {
  if (rows.length === 0) return undefined
  return {
    head: ['contender', 'per second', 'p50 ms', 'p99 ms', 'server CPU s', 'server MB', 'client CPU s'],
    body: rows.map(({ label, measurements }) => [
      label,
      medianAndSpread(measurements.map((measurement) => measurement.rate)),
      fieldMedian(measurements, 'p50Ms'),
      fieldMedian(measurements, 'p99Ms'),
      fieldMedian(measurements, 'serverCpuSeconds'),
      fieldMedian(measurements, 'serverRssMb'),
      fieldMedian(measurements, 'clientCpuSeconds'),
    ]),
  }
}

export function figureTable({ figures }: ScenarioReport): Table | undefined {
  if (figures.length === 0) return undefined
  const withGoals = figures.some((figure) => figure.goal !== undefined)
  return {
    head: ['figure', 'value', ...(withGoals ? ['goal', ''] : [])],
    body: figures.map((figure) => {
      const value = `${medianAndSpread(figure.values)} ${figure.unit}`.trim()
      return [figure.label, value, ...(withGoals ? [goalText(figure.goal), goalMet(figure)] : [])]
    }),
  }
}

function remarks({ rows }: ScenarioReport): string[] {
  return rows.flatMap(({ label, measurements }) =>
    measurements.flatMap(({ remark }, round) =>
      remark === undefined ? [] : [`${label}, round ${round + 1}: ${remark}`],
    ),
  )
}

export function asText({ head, body }: Table): string {
  const lines = [head, ...body]
  const widths = head.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)))
  const render = (line: readonly string[]) =>
    line
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd()
  return [render(head), widths.map((width) => '─'.repeat(width)).join('  '), ...body.map(render)].join('\n')
}

export function asMarkdown({ head, body }: Table): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  const rule = `|${head.map((_, column) => (column === 0 ? ' --- |' : ' ---: |')).join('')}`
  return [line(head), rule, ...body.map(line)].join('\n')
}

/** One scenario, for the terminal or for the results page. */
export function scenarioText(
  { title, outcome }: FinishedScenario,
  style: { heading: (title: string) => string; table: (table: Table) => string; item: string },
): string {
  const parts = [style.heading(title)]
  if ('failed' in outcome) parts.push(`Failed: ${outcome.failed}`)
  else {
    const { report } = outcome
    for (const table of [rateTable(report), figureTable(report)]) if (table) parts.push(style.table(table))
    const notes = [...report.notes, ...remarks(report)]
    if (notes.length > 0) parts.push(notes.map((note) => `${style.item}${note}`).join('\n'))
  }
  return parts.join('\n\n')
}
