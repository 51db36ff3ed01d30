import { MAX_FEED_ENTRIES } from '@baton/protocol'
import type { AuditPage, AuditQuery } from '../../audit.ts'
import type { Disk } from '../../disk.ts'
import { totalOf } from '../../rules/task.ts'
import type { FeedEntry, TaskFeed } from '../../views/queries.ts'

export async function readAudit(disk: Disk, query: AuditQuery): Promise<AuditPage> {
  const found = await disk.audited({ ...query, limit: query.limit + 1 })
  const records = found.slice(0, query.limit)
  return { records, next: found.length > query.limit ? (records.at(-1)?.id ?? null) : null }
}

const nothing = { name: null, level: null, partitions: null, target: null, request: null }

/** What happened to a task, newest first: from its row, its lanes and the audit. */
export async function readFeed(disk: Disk, taskId: string): Promise<TaskFeed | null> {
  const detail = await disk.taskDetail(taskId)
  if (detail === null || totalOf(detail.task.partitions) === 0) return null
  const { task, lanes, laneCount } = detail
  const { state, finishedAt, firstCallBackAt, owners } = task
  const query = { taskId, name: null, before: Number.MAX_SAFE_INTEGER, limit: MAX_FEED_ENTRIES }
  const records = await disk.audited(query)
  const entries: FeedEntry[] = []
  // Of those that happened together, the latter first.
  if (state === 'done' && finishedAt !== null) entries.push({ ...nothing, at: finishedAt, event: 'done' })
  for (const { lane } of lanes.toReversed())
    if (lane.finishedAt !== null)
      entries.push({
        ...nothing,
        at: lane.finishedAt,
        event: 'level-done',
        level: lane.level,
        partitions: lane.partitions.done,
      })
  for (const { at, action, changed, target, name, request } of records)
    entries.push({ at, event: action, name, level: null, partitions: changed, target, request })
  entries.push({ ...nothing, at: firstCallBackAt, event: 'call-back', name: owners[0] ?? null })
  const newest = entries.toSorted((a, b) => b.at - a.at)
  return {
    task: { taskId, owners },
    entries: newest.slice(0, MAX_FEED_ENTRIES),
    isComplete:
      newest.length <= MAX_FEED_ENTRIES && records.length < MAX_FEED_ENTRIES && laneCount === lanes.length,
  }
}
