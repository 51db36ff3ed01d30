import type { Disturbance, FleetNode } from './fleet.ts'
import type { Findings } from './scene.ts'

/** An error line in a node's log. */
export interface LoggedError {
  /** When the line was read, in milliseconds since 1970. The clock of the node may be wrong on purpose. */
  readonly time: number
  readonly line: string
}

/** pino's `error`; `fatal` is 60. */
const ERROR = 50

/** Lines that are not JSON are not log lines: Node's own warnings, for example. */
export function errorIn(line: string, time: number): LoggedError | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const { level } = JSON.parse(line) as { level: number }
    return level >= ERROR ? { time, line } : undefined
  } catch {
    return undefined
  }
}

export interface Happened {
  readonly disturbance: Disturbance
  readonly at: number
}

/**
 * An error in a log is a finding, unless it follows a disturbance that explains it. A node may notice a fault
 * late.
 */
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
