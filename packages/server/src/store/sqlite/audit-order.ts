import type { DatabaseSync } from 'node:sqlite'
import { holdsBarrier } from '../../handoff/rules/lane-rules.ts'
import type { TaskEntry } from '../../handoff/rules/task-entry.ts'
import { laneColumns, readTallies, readTask, taskColumns } from './entries.ts'
import { LOW_WATER } from './lanes.ts'

/**
 * Says where the order of the hand-off could not be what it should: a partition that no pull or
 * sweep would ever come across, a lane that is open but not served, a barrier in the wrong place.
 */
export function auditOrder(db: DatabaseSync): string[] {
  const tasks = db.prepare(`SELECT ${taskColumns} FROM task`).all().map(readTask)
  return [...misplacedRows(db), ...tasks.flatMap((task) => laneFindings(db, task))]
}

const misplacements = [
  [`state = 'ready' AND rank IS NULL`, 'ready without a rank'],
  [`state = 'held' AND rank IS NOT NULL`, 'held, but still ranked'],
  [`state IN ('leased', 'delayed') AND due_at IS NULL`, 'leased or delayed without an end'],
  [`state NOT IN ('leased', 'delayed') AND due_at IS NOT NULL`, 'due, but neither leased nor delayed'],
  [`state = 'leased' AND (outcome IS NOT NULL OR secret = '')`, 'leased under a lease that has ended'],
] as const

function misplacedRows(db: DatabaseSync): string[] {
  return misplacements.flatMap(([condition, finding]) => {
    const { rows } = db.prepare(`SELECT count(*) AS rows FROM partition WHERE ${condition}`).get() ?? {}
    return rows === 0 ? [] : [`${rows} partitions are ${finding}`]
  })
}

/** Leases and back-offs run out; everything else must be cancelled, or about to be. */
function cancelledFindings(db: DatabaseSync, { id, taskId, partitions }: TaskEntry): string[] {
  const left = partitions.ready + partitions.held + partitions.parked
  const isUnderWay = db.prepare(`SELECT 1 FROM task_step WHERE task = ? AND step = 'cancel'`).get(id)
  if (left === 0 || isUnderWay !== undefined) return []
  return [`${taskId} is cancelled, and ${left} of its partitions never will be`]
}

function laneFindings(db: DatabaseSync, task: TaskEntry): string[] {
  if (task.cancelled) return cancelledFindings(db, task)
  const findings: string[] = []
  const lanes = db.prepare(`SELECT ${laneColumns} FROM lane WHERE task = ? ORDER BY level`).all(task.id)
  const views = lanes.map((lane) => ({
    level: lane['level'] as number,
    parkedSkipped: lane['parked_skipped'] === 1,
    ...readTallies(lane),
  }))
  const lowest = views.find(holdsBarrier)?.level ?? null
  if (task.levelBarrier && task.openLevel !== lowest)
    findings.push(
      `the barrier of ${task.taskId} is open up to ${task.openLevel}, but ${lowest} is unfinished`,
    )
  const isFilling = db.prepare(`SELECT 1 FROM task_step WHERE task = ? AND step = 'fill'`).get(task.id)
  if (task.paused || isFilling !== undefined) return findings
  for (const { level, partitions } of views) {
    const isOpen = !task.levelBarrier || (lowest !== null && level <= lowest)
    if (isOpen && partitions.held > 0 && partitions.ready < LOW_WATER)
      findings.push(`lane ${level} of ${task.taskId} is open and holds ${partitions.held} back for nothing`)
  }
  return findings
}
