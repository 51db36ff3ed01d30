import type { Disturbance, FleetNode } from './fleet.ts'
import type { Findings } from './scene.ts'

/** A line of a node's log that says that something went wrong. */
export interface LoggedError {
  /** Milliseconds since 1970. */
  readonly time: number
  readonly line: string
}

/** pino's `error`; `fatal` is 60. */
const ERROR = 50

/** Lines that are no JSON are no log lines: Node's own warnings, for example. */
export function errorIn(line: string): LoggedError | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const { level, time } = JSON.parse(line) as { level: number; time: number | string }
    return level >= ERROR ? { time: new Date(time).getTime(), line } : undefined
  } catch {
    return undefined
  }
}

export interface Happened {
  readonly disturbance: Disturbance
  readonly at: number
}

/** An error in a log is a finding, unless it follows a disturbance that explains it. How late a node notices is up to it. */
export function checkLogs(
  nodes: readonly FleetNode[],
  happened: readonly Happened[],
  findings: Findings,
): void {
  for (const { name, errors } of nodes)
    for (const { time, line } of errors) {
      const isExplained = happened.some(
        ({ disturbance, at }) => at <= time && disturbance.explains?.some((pattern) => pattern.test(line)),
      )
      if (!isExplained) findings.add(`${name} logged ${line}`)
    }
}
