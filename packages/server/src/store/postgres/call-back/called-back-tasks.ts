import type { TaskEntry } from '../../../handoff/rules/task-entry.ts'
import { type CountDeltas, unfoldedSums } from '../counters/count-deltas.ts'
import { addTallies, readTask, taskColumns } from '../rows/entries.ts'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'

const lock = statement(
  'lock-tasks-by-name',
  `SELECT task_id FROM baton.task WHERE task_id = ANY($1::text[]) ORDER BY id FOR NO KEY UPDATE`,
)
const insert = statement(
  'insert-tasks',
  `INSERT INTO baton.task (task_id, state, level_barrier, first_call_back_at, last_call_back_at)
   SELECT name, 'open', $2, $3, $3 FROM unnest($1::text[]) AS n (name) ORDER BY 1
   ON CONFLICT (task_id) DO NOTHING RETURNING task_id`,
)
const exact = statement(
  'exact-tasks',
  `SELECT ${taskColumns('t')}, unfolded.sums FROM baton.task t
   LEFT JOIN LATERAL (
     SELECT row_to_json(s) AS sums FROM (SELECT ${unfoldedSums} FROM baton.count_delta d WHERE d.task = t.id) s
   ) unfolded ON true
   WHERE t.task_id = ANY($1::text[])`,
)
const save = statement(
  'save-called-back-task',
  `UPDATE baton.task SET last_call_back_at = $2, generation = $3, finished_at = $4, purged_at = $5, open_level = $6
   WHERE id = $1`,
)

export interface CalledBackTask {
  readonly entry: TaskEntry
  /** Came into being with this transaction, and has no partition yet. */
  isNew: boolean
}

/**
 * The tasks of some call-backs, created where they are new, locked and exact: what the roller has
 * not folded in yet is added. Whoever else calls the same task back waits until this one is through.
 */
export async function lockCalledBackTasks(
  tx: Transaction,
  taskIds: readonly string[],
  levelBarrier: boolean,
  deltas: CountDeltas,
): Promise<Map<string, CalledBackTask>> {
  const names = [...new Set(taskIds)]
  const found = new Set((await tx.run(lock, [names])).map((row) => row['task_id'] as string))
  const missing = names.filter((name) => !found.has(name))
  const created = new Set<string>()
  if (missing.length > 0) {
    const rows = await tx.write(insert, [missing, levelBarrier, await tx.now()])
    for (const row of rows) created.add(row['task_id'] as string)
    // Another node created it at the same moment.
    const others = missing.filter((name) => !created.has(name))
    if (others.length > 0) await tx.run(lock, [others])
  }
  const tasks = new Map<string, CalledBackTask>()
  for (const row of await tx.run(exact, [names])) {
    const entry = readTask(row)
    addTallies(entry, (row['sums'] as Record<string, unknown> | null) ?? {})
    deltas.addTo(entry)
    tasks.set(entry.taskId, { entry, isNew: created.has(entry.taskId) })
  }
  return tasks
}

export function saveCalledBackTask(tx: Transaction, task: TaskEntry): void {
  const { id, lastCallBackAt, generation, finishedAt, purgedAt, openLevel } = task
  tx.post(save, [id, lastCallBackAt, generation, finishedAt, purgedAt, openLevel])
}
