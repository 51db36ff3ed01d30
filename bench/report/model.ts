/**
 * The result of one measurement of one contender. A field is absent if it does not apply or was not measured.
 */
export interface Measurement {
  /** Partitions (or descriptors) per second. */
  rate: number
  p50Ms?: number
  p99Ms?: number
  /** Of the measured server's process, or of the bare loop. */
  serverCpuSeconds?: number
  serverRssMb?: number
  clientCpuSeconds?: number
  /** A note under the table, e.g. that the backlog ended early. */
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

/** A figure that is not a rate: a quotient of two rows, a delay, a share of a processor. */
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
 * The labels of rows and figures without a result. A scenario whose servers answered but handed off nothing
 * is broken, and its table must not look like a slow one.
 */
export function unmeasured({ rows, figures }: ScenarioReport): string[] {
  const idle = rows.filter(
    ({ measurements }) => measurements.length === 0 || measurements.some(({ rate }) => !(rate > 0)),
  )
  const empty = figures.filter(({ values }) => values.length === 0 || !values.every(Number.isFinite))
  return [...idle, ...empty].map(({ label }) => label)
}

/** Removes the goals: a run that is too small to measure must not report a goal as met or missed. */
export function withoutGoals(report: ScenarioReport): ScenarioReport {
  return { ...report, figures: report.figures.map(({ goal: _, ...figure }) => figure) }
}

/**
 * Divides round by round: both were measured within seconds of each other, under the same load on the
 * machine.
 */
export function quotient(label: string, subject: Row, limit: Row, goal?: Goal): Figure {
  const values = subject.measurements.map(
    (measurement, round) => measurement.rate / (limit.measurements[round]?.rate ?? Number.NaN),
  )
  return { label, unit: '×', values, ...(goal ? { goal } : {}) }
}

/** The same of what each handed off in a second of its processor time: other load on the machine matters less. */
export function perProcessorSecond(label: string, subject: Row, limit: Row, goal?: Goal): Figure {
  const perSecond = ({ measurements, ...row }: Row): Row => ({
    ...row,
    measurements: measurements.map((measurement) => ({
      rate: measurement.rate / (measurement.serverCpuSeconds ?? Number.NaN),
    })),
  })
  return quotient(label, perSecond(subject), perSecond(limit), goal)
}
