/** What one measurement of one contender brought. Absent: does not apply, or was not taken. */
export interface Measurement {
  /** Partitions (or descriptors) per second. */
  rate: number
  p50Ms?: number
  p99Ms?: number
  /** Of the measured server's process, or of the bare loop's. */
  serverCpuSeconds?: number
  serverRssMb?: number
  clientCpuSeconds?: number
  /** Worth a note under the table, e.g. that the backlog ended early. */
  remark?: string
}

/** One line of a scenario's table: a contender and its measurements, one per round. */
export interface Row {
  label: string
  measurements: Measurement[]
}

export interface Goal {
  atLeast?: number
  atMost?: number
}

/** A figure that is no rate: a quotient of two rows, a delay, a share of a processor. */
export interface Figure {
  label: string
  unit: '' | '×' | 'ms' | '%' | 'MB' | 's'
  values: number[]
  goal?: Goal
}

export interface ScenarioReport {
  rows: Row[]
  figures: Figure[]
  notes: string[]
}

export interface FinishedScenario {
  name: string
  title: string
  outcome: { report: ScenarioReport } | { failed: string }
}

/**
 * What a report lacks. A scenario whose servers answered, but handed nothing over, is broken, and its table must
 * not look like a slow one.
 */
export function unmeasured({ rows, figures }: ScenarioReport): string[] {
  const idle = rows.filter(
    ({ measurements }) => measurements.length === 0 || measurements.some(({ rate }) => !(rate > 0)),
  )
  const empty = figures.filter(({ values }) => values.length === 0 || !values.every(Number.isFinite))
  return [...idle, ...empty].map(({ label }) => label)
}

/** A run that is too small to measure must not say that a goal is met or missed. */
export function withoutGoals(report: ScenarioReport): ScenarioReport {
  return { ...report, figures: report.figures.map(({ goal: _, ...figure }) => figure) }
}

/** Round by round: both were measured within seconds of each other, whatever the machine did meanwhile. */
export function quotient(label: string, subject: Row, limit: Row, goal?: Goal): Figure {
  const values = subject.measurements.map(
    (measurement, round) => measurement.rate / (limit.measurements[round]?.rate ?? Number.NaN),
  )
  return { label, unit: '×', values, ...(goal ? { goal } : {}) }
}
