import type { ChangePage, ChangeQuery, ParkedNotice } from '../../../handoff/shown/change.ts'
import { taskColumns } from '../rows/entries.ts'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import { taskRows } from './task-rows.ts'

/** Older notices are forgotten; whoever comes back later looks at everything anew. */
export const NOTICES_KEPT = 20_000

/**
 * The last position that can be seen: not that of the sequence, which is ahead of what is committed. All below it can be
 * seen, too, because whoever gives positions out holds the roll lock until the commit. A roll that parks something gives
 * the last of its positions to the task, and tasks are never removed, so it does not go back. It begins as the sequence does.
 */
export const PRESENT = 'SELECT greatest(max(changed), 1) FROM baton.task'
const present = statement('present-change', `SELECT (${PRESENT}) AS position`)
const oldestNotice = statement('oldest-notice', 'SELECT min(position) AS position FROM baton.parked_notice')
const changedTasks = statement(
  'changed-tasks',
  `SELECT ${taskColumns('t')} FROM baton.task t WHERE changed > $1 AND changed <= $2 ORDER BY changed LIMIT $3`,
)
const notices = statement<NoticeRow>(
  'parked-notices',
  `SELECT n.position, t.task_id AS "taskId", p.level, p.idx AS index, p.spelling, p.attempts, p.reason
   FROM (SELECT * FROM baton.parked_notice WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3) n
   LEFT JOIN baton.partition p ON p.id = n.partition AND p.state = 'parked'
   LEFT JOIN baton.lane l ON l.id = p.lane
   LEFT JOIN baton.task t ON t.id = l.task
   ORDER BY n.position`,
)

/** The partition is null where it is no longer parked. */
type NoticeRow = { readonly position: number } & (ParkedNotice | { readonly taskId: null })

const isOfOneParked = (row: NoticeRow): row is NoticeRow & ParkedNotice => row.taskId !== null

/**
 * Positions are numbers given out under the roller's lock, and kept with what changed: they mean the
 * same on every node and after a restart. A task that changed again stands only at its last place.
 */
export async function changePage(tx: Transaction, { after, limit }: ChangeQuery): Promise<ChangePage> {
  const [now, [at], [oldest]] = await Promise.all([tx.now(), tx.run(present), tx.run(oldestNotice)])
  const end = at?.['position'] as number
  const from = after === null ? end : parse(after)
  const forgotten = (oldest?.['position'] as number | null) ?? 0
  const isKnown = from !== undefined && from <= end && (from >= forgotten || end - from < NOTICES_KEPT)
  if (!isKnown) return { next: format(end), missed: true, now, tasks: [], parked: [] }
  const [taskList, noticeList] = await Promise.all([
    tx.run(changedTasks, [from, end, limit]),
    tx.run(notices, [from, end, limit]),
  ])
  // Each list may have been cut: only up to where both are complete is the page.
  const until = Math.min(
    taskList.length < limit ? end : (taskList.at(-1)?.['changed'] as number),
    noticeList.length < limit ? end : (noticeList.at(-1)?.position ?? end),
  )
  return {
    next: format(until),
    missed: false,
    now,
    tasks: await taskRows(
      tx,
      taskList.filter((row) => (row['changed'] as number) <= until),
    ),
    parked: noticeList
      .filter(isOfOneParked)
      .filter(({ position }) => position <= until)
      .map(({ position: _, ...notice }) => notice),
  }
}

const format = (position: number) => position.toString(36)

function parse(position: string): number | undefined {
  const number = Number.parseInt(position, 36)
  return /^[0-9a-z]{1,11}$/.test(position) && Number.isSafeInteger(number) && format(number) === position
    ? number
    : undefined
}
