import { partitionStates } from './life-cycle.ts'
import { noTallies, type Tallies, type Tally } from './task-facts.ts'
import { type MutableTask, taskState } from './task-state.ts'

export interface AuditedLane {
  readonly name: string
  /** The id of its task. */
  readonly task: number
  readonly level: number
  readonly parkedSkipped: boolean
  readonly kept: Tallies
  /** Counted from the rows of its partitions. */
  readonly counted: Tallies
  readonly purged: number
  readonly purgedRecords: number
}

/**
 * Reports where lane counters disagree with the rows, and where task counters disagree with those of the
 * lanes.
 */
export function auditCounters(lanes: readonly AuditedLane[], tasks: readonly MutableTask[]): string[] {
  const findings = lanes.flatMap(auditLane)
  const lanesOf = Map.groupBy(lanes, ({ task }) => task)
  for (const task of tasks) {
    const own = lanesOf.get(task.id) ?? []
    const kept = own.map((lane) => lane.kept)
    findings.push(...compare(`task ${task.taskId}`, task, kept.reduce(add, noTallies())))
    const open = own.find(({ level }) => level === task.openLevel)
    const state = taskState(task, open === undefined ? null : { ...open, ...open.kept })
    if (task.state !== state) findings.push(`task ${task.taskId} is marked ${task.state}, but is ${state}`)
  }
  return findings
}

/** Purged rows are deleted but were finished. Only they may account for a difference. */
function auditLane({ name, kept, counted, purged, purgedRecords }: AuditedLane): string[] {
  const finished = ({ done, cancelled }: Tally) => done + cancelled
  const findings: string[] = []
  const expect = (what: string, has: number, rows: number, gone: number) => {
    if (has !== rows + gone)
      findings.push(`${name} counts ${has} ${what}, its rows say ${rows} + ${gone} purged`)
  }
  expect('finished', finished(kept.partitions), finished(counted.partitions), purged)
  expect('records finished', finished(kept.records), finished(counted.records), purgedRecords)
  if (purged > 0) return [...findings, ...compare(name, unfinished(kept), unfinished(counted))]
  return [...findings, ...compare(name, kept, counted)]
}

const unfinished = ({ partitions, records }: Tallies): Tallies => ({
  partitions: { ...partitions, done: 0, cancelled: 0 },
  records: { ...records, done: 0, cancelled: 0 },
})

function compare(name: string, kept: Tallies, counted: Tallies): string[] {
  return partitionStates.flatMap((state) => [
    ...(kept.partitions[state] === counted.partitions[state]
      ? []
      : [`${name} counts ${kept.partitions[state]} ${state}, its rows say ${counted.partitions[state]}`]),
    ...(kept.records[state] === counted.records[state]
      ? []
      : [`${name} counts ${kept.records[state]} records ${state}, its rows say ${counted.records[state]}`]),
  ])
}

function add(a: Tallies, b: Tallies): Tallies {
  const sum = noTallies()
  for (const state of partitionStates) {
    sum.partitions[state] = a.partitions[state] + b.partitions[state]
    sum.records[state] = a.records[state] + b.records[state]
  }
  return sum
}
