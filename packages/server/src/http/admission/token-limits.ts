import type { CallBack } from '@baton/protocol'
import type { Tick } from '../../handoff/events.ts'
import type { PulledPartition } from '../../handoff/partition.ts'
import type { PullRequest } from '../../handoff/requests.ts'
import type { InstanceRecord } from '../../handoff/views/records.ts'
import { RequestProblem } from '../answers/problems.ts'
import type { Token } from './tokens.ts'

/** The fields of a task that decide who may see it. */
interface OwnedTask {
  readonly taskId: string
  /** Names of the tokens that called it back. */
  readonly owners: readonly string[]
}

/** How many prefixes or tables a refusal names. */
const MOST_NAMED = 5

/**
 * Throws if the token is limited to other tasks. Called before the task is looked up, so that the answer does
 * not reveal whether the task exists.
 */
export function requireTaskLimit(token: Token | null, taskId: string): void {
  if (isWithinLimit(token, taskId)) return
  throw limited(`the token is limited to tasks whose id begins with ${named(token?.tasks ?? [])}`)
}

/** Throws if a producer requests a task that it did not call back. */
export function requireOwn(token: Token | null, task: OwnedTask): void {
  requireTaskLimit(token, task.taskId)
  if (isOwn(token, task)) return
  throw limited('a producer may look at and seal the tasks that it called back, and this is none of them')
}

/** Whether a list may show the task with this token. */
export function isWithinLimit(token: Token | null, taskId: string): boolean {
  return token === null || isWithin(token.tasks, taskId)
}

/** Whether the token may access tasks that others called back. */
export function mayAccessOthers(token: Token | null, ...roles: readonly string[]): boolean {
  return token === null || roles.some((role) => token.roles.has(role))
}

/** The record, without the tasks that the token does not cover. */
export function instanceWithinLimits(token: Token | null, instance: InstanceRecord): InstanceRecord {
  if (token === null || token.tasks === null) return instance
  return { ...instance, tasks: instance.tasks.filter(({ taskId }) => isWithin(token.tasks, taskId)) }
}

/**
 * The tick, without the events that the token does not cover. Instances belong to no task, so their events
 * are removed for a limited token.
 */
export function tickWithinLimits({ tasks }: Pick<Token, 'tasks'>, tick: Tick): Tick {
  if (tasks === null) return tick
  const events = tick.events.filter((event) => {
    if (event.kind === 'task') return isWithin(tasks, event.row.facts.taskId)
    return event.kind === 'parked' ? isWithin(tasks, event.notice.taskId) : event.kind === 'reset'
  })
  return { ...tick, events }
}

/** Throws if the token is limited to other tasks or tables than those of the call-back. */
export function requireCallBackLimits(token: Token | null, { taskId, partitions }: CallBack): void {
  requireTaskLimit(token, taskId)
  if (token === null || token.tables === null) return
  const allowed = new Set(token.tables)
  const at = partitions.findIndex(({ computeTableName }) => !allowed.has(computeTableName))
  if (at === -1) return
  const table = partitions[at]?.computeTableName
  throw limited(
    `the token is limited to partitions of ${named(token.tables)}, and the element at /${at} is of ${JSON.stringify(table)}; nothing was stored`,
  )
}

/**
 * Restricts a pull to the tables it names or, if it names none, to the tables that the token is limited to.
 * Throws if it names a table outside that limit.
 */
export function pullWithinLimits(token: Token | null, pull: PullRequest): PullRequest {
  if (token === null || token.tables === null) return pull
  const { tables } = token
  const outside = pull.tables?.find((table) => !tables.includes(table))
  if (outside !== undefined)
    throw limited(
      `the token is limited to partitions of ${named(tables)}, and the pull asks for ${JSON.stringify(outside)}`,
    )
  return pull.tables === null ? { ...pull, tables } : pull
}

/**
 * Filters leases that are returned again for an idempotency key: the limits of the token may have changed
 * since.
 */
export function handedOutWithinLimits(
  token: Token | null,
  partitions: readonly PulledPartition[],
): readonly PulledPartition[] {
  if (token === null || token.tables === null) return partitions
  const allowed = token.tables
  return partitions.filter(({ computeTableName }) => allowed.includes(computeTableName))
}

const isWithin = (prefixes: readonly string[] | null, taskId: string): boolean =>
  prefixes === null || prefixes.some((prefix) => taskId.startsWith(prefix))

const isOwn = (token: Token | null, { owners }: OwnedTask): boolean =>
  token === null || mayAccessOthers(token, 'operator', 'viewer') || owners.includes(token.name)

function named(texts: readonly string[]): string {
  const shown = texts.slice(0, MOST_NAMED).map((text) => JSON.stringify(text))
  const more = texts.length - shown.length
  return more > 0 ? `${shown.join(', ')} or ${more} others` : shown.join(' or ')
}

const limited = (detail: string) => new RequestProblem('token_limited', detail)
