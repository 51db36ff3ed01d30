import type { DatabaseSync } from 'node:sqlite'
import { type PartitionState, partitionStates } from '../../handoff/life-cycle.ts'
import { emptyTally, type Tally, taskState } from '../../handoff/task-record.ts'
import { auditOrder } from './audit-order.ts'
import { laneColumns, readTallies, readTask } from './entries.ts'

/** Recounts every partition and says where a counter, a state or an index disagrees with the rows. */
export function audit(db: DatabaseSync): string[] {
  const findings = [...integrityFindings(db), ...auditOrder(db)]
  const lanes = db
    .prepare(
      `SELECT ${laneColumns}, (SELECT task_id FROM task WHERE task.id = lane.task) AS task_id FROM lane`,
    )
    .all()
  const recount = db.prepare(
    'SELECT state, count(*) AS n, sum(record_count) AS records FROM partition WHERE lane = ? GROUP BY state',
  )
  const sums = new Map<number, { partitions: Tally; records: Tally }>()
  for (const lane of lanes) {
    const name = `lane ${lane['level']} of ${lane['task_id']}`
    const counted = { partitions: emptyTally(), records: emptyTally() }
    for (const row of recount.all(lane['id'] as number)) {
      counted.partitions[row['state'] as PartitionState] = row['n'] as number
      counted.records[row['state'] as PartitionState] = row['records'] as number
    }
    const kept = readTallies(lane)
    findings.push(
      ...compareLane(name, kept, counted, lane['purged'] as number, lane['purged_records'] as number),
    )
    const task = lane['task'] as number
    sums.set(task, addTallies(sums.get(task) ?? { partitions: emptyTally(), records: emptyTally() }, kept))
  }
  for (const row of db.prepare('SELECT * FROM task').all()) {
    const task = readTask(row)
    const sum = sums.get(task.id) ?? { partitions: emptyTally(), records: emptyTally() }
    findings.push(...compare(`task ${task.taskId}`, task, sum))
    if (task.state !== taskState(task))
      findings.push(`task ${task.taskId} is marked ${task.state}, but is ${taskState(task)}`)
  }
  return findings
}

/** Purged rows are gone, but finished: they make up the difference, and nothing else may. */
function compareLane(
  name: string,
  kept: Tallies,
  counted: Tallies,
  purged: number,
  purgedRecords: number,
): string[] {
  const finished = (tally: Tally) => tally.done + tally.cancelled
  const findings: string[] = []
  if (finished(kept.partitions) !== finished(counted.partitions) + purged) {
    findings.push(
      `${name} counts ${finished(kept.partitions)} finished, its rows say ${finished(counted.partitions)} + ${purged} purged`,
    )
  }
  if (finished(kept.records) !== finished(counted.records) + purgedRecords) {
    findings.push(
      `${name} counts ${finished(kept.records)} records finished, its rows say ${finished(counted.records)} + ${purgedRecords} purged`,
    )
  }
  if (purged > 0) return [...findings, ...compare(name, unfinished(kept), unfinished(counted))]
  return [...findings, ...compare(name, kept, counted)]
}

interface Tallies {
  readonly partitions: Tally
  readonly records: Tally
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

function addTallies(a: Tallies, b: Tallies): Tallies {
  const sum = { partitions: emptyTally(), records: emptyTally() }
  for (const state of partitionStates) {
    sum.partitions[state] = a.partitions[state] + b.partitions[state]
    sum.records[state] = a.records[state] + b.records[state]
  }
  return sum
}

function integrityFindings(db: DatabaseSync): string[] {
  const rows = db.prepare('PRAGMA integrity_check').all()
  return rows.map((row) => String(row['integrity_check'])).filter((finding) => finding !== 'ok')
}
