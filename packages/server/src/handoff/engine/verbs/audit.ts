import type { Disk, Recount } from '../../disk.ts'
import type { Line } from '../../partition.ts'
import { holdsBarrier } from '../../rules/barrier.ts'
import { type AuditedLane, auditCounters } from '../../rules/counter-audit.ts'
import type { StoredLane, StoredTask } from '../../stored.ts'

/** Recounts all rows and reports where counters, lines or barriers disagree with them. */
export async function audit(disk: Disk): Promise<string[]> {
  return auditRecount(await disk.recount())
}

export function auditRecount(counted: readonly Recount[]): string[] {
  const lanes = counted.map(({ lane, task, partitions, records }): AuditedLane => {
    const { level, parkedSkipped, purged, purgedRecords } = lane
    return {
      name: laneName(task, level),
      task: task.id,
      level,
      parkedSkipped,
      kept: lane,
      counted: { partitions, records },
      purged,
      purgedRecords,
    }
  })
  const byTask = Map.groupBy(counted, ({ task }) => task.id)
  const tasks = [...byTask.values()].flatMap(([one]) => (one === undefined ? [] : [one.task]))
  return [
    ...auditCounters(
      lanes,
      tasks.map((task) => ({ ...task, rerunning: task.reruns.length > 0 })),
    ),
    ...counted.flatMap(auditLines),
    ...counted.flatMap(auditTables),
    ...tasks.flatMap((task) =>
      auditBarrier(
        task,
        (byTask.get(task.id) ?? []).map(({ lane }) => lane),
      ),
    ),
  ]
}

export const laneName = ({ taskId }: StoredTask, level: number): string => `level ${level} of task ${taskId}`

function auditLines({ lane, task, waiting }: Recount): string[] {
  const { level, released, retries, tag, retryTag, turn, partitions } = lane
  const findings: string[] = []
  const expect = (what: string, kept: unknown, found: unknown) => {
    if (kept !== found) findings.push(`${laneName(task, level)} has ${kept} ${what}, its rows say ${found}`)
  }
  const linesOf: [Line, number][] = [
    ['released', released],
    ['retry', retries],
    ['fresh', partitions.ready - released - retries],
  ]
  for (const [line, kept] of linesOf) expect(`waiting on the ${line} line`, kept, waiting[line])
  const tags = [...(partitions.ready > retries ? [tag] : []), ...(retries > 0 ? [retryTag] : [])]
  const next = tags.length === 0 ? null : tags.reduce((a, b) => (b < a ? b : a))
  expect('as its turn', turn, next)
  return findings
}

/** Checks the turn and counts of a lane's tables. A lane with a single table keeps the counts itself. */
function auditTables({ lane, task, tables }: Recount): string[] {
  const isOnly = tables.length === 1
  return tables.flatMap(({ row, waiting }) => {
    const ready = waiting.fresh + waiting.released + waiting.retry
    const { tag, retryTag } = row
    const tags = [...(ready > waiting.retry ? [tag] : []), ...(waiting.retry > 0 ? [retryTag] : [])]
    const turn = tags.length === 0 ? null : tags.reduce((a, b) => (b < a ? b : a))
    const findings: string[] = []
    const expect = (what: string, kept: unknown, found: unknown) => {
      if (kept !== found)
        findings.push(
          `table ${row.table} on ${laneName(task, lane.level)} has ${kept} ${what}, its rows say ${found}`,
        )
    }
    expect('as its turn', row.turn, turn)
    if (isOnly) expect('ready', lane.partitions.ready, ready)
    else {
      expect('ready', row.ready, ready)
      expect('released', row.released, waiting.released)
      expect('retries', row.retries, waiting.retry)
    }
    return findings
  })
}

function auditBarrier(task: StoredTask, lanes: readonly StoredLane[]): string[] {
  if (!task.levelBarrier || task.cancelled) return []
  const levels = lanes.filter(holdsBarrier).map(({ level }) => level)
  const lowest = levels.length === 0 ? null : levels.reduce((a, b) => Math.min(a, b))
  if (task.openLevel === lowest) return []
  return [`the barrier of task ${task.taskId} is open up to ${task.openLevel}, but ${lowest} is unfinished`]
}
