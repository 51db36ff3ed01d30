import { type CallBack, quoted } from '@baton/protocol'
import type { Tick } from '../../handoff/change-stream.ts'
import type { PulledPartition } from '../../handoff/partition.ts'
import type { OwnerLimited, OwnerLimits, TooManyLanes } from '../../handoff/rules/open-work-limits.ts'
import type { PullRequest } from '../../handoff/store.ts'
import type { InstanceDetails } from '../../handoff/views/queries.ts'
import { RequestProblem } from '../answers/problems.ts'
import type { Token } from './tokens.ts'

// What a token may see and do: its tasks, tables and levels, and the tasks of its producer.

/** The fields of a task that decide who may see it. */
interface OwnedTask {
  readonly taskId: string
  /** Names of the tokens that called it back. The first one owns it. */
  readonly owners: readonly string[]
}

/** How many prefixes or tables a refusal names. */
const MOST_NAMED = 5

/** Called before the task is looked up, so that the answer does not reveal whether it exists. */
export function requireTaskLimit(token: Token | null, taskId: string): void {
  if (isWithinLimit(token, taskId)) return
  throw limited(`the token is limited to tasks whose id begins with ${named(token?.tasks ?? [])}`)
}

export function requireView(token: Token | null, task: OwnedTask): void {
  requireTaskLimit(token, task.taskId)
  if (mayView(token, task)) return
  throw ofAnother()
}

/** Throws if a producer changes a task of another producer, also with a token that may view all tasks. */
export function requireOwn(token: Token | null, task: OwnedTask): void {
  requireTaskLimit(token, task.taskId)
  if (isOwn(token, task)) return
  throw ofAnother()
}

export const ofAnother = () =>
  limited(
    'the task belongs to another producer, which first called it back. To share tasks, give both tokens a prefix of their ids (tasks); an operator can change the owner (POST /tasks/{taskId}/owner)',
  )

/** A task that nobody has called back may become that of any producer. */
export const ofNobody = () =>
  limited(
    'the task has not been called back, so it belongs to nobody. Send its settings with the call-back, as the header Task-Settings; only operators can set them before',
  )

/** Names the tasks with most lanes, if the token may see tasks of others. */
export function refusedLanes(token: Token | null, { most, tasks }: TooManyLanes): RequestProblem {
  const seesOthers = sharesTasks(token) || mayAccessOthers(token, 'operator', 'viewer')
  const seen = seesOthers ? tasks.filter(({ taskId }) => isWithinLimit(token, taskId)) : []
  const list = seen.map(({ taskId, lanes }) => `${quoted(taskId)} (${lanes})`).join(', ')
  return new RequestProblem(
    'too_many_lanes',
    `the service has ${most} lanes, as many as --max-lanes allows; nothing was stored${list === '' ? '' : `. Most are of the tasks ${list}`}`,
  )
}

/** Whether a token may call back tasks of other producers: its prefixes say so, or it is an operator's. */
export const sharesTasks = (token: Token | null): boolean =>
  token !== null && (token.tasks !== null || mayAccessOthers(token, 'operator'))

export function isWithinLimit(token: Token | null, taskId: string): boolean {
  return token === null || isWithin(token.tasks, taskId)
}

export function mayAccessOthers(token: Token | null, ...roles: readonly string[]): boolean {
  return token === null || roles.some((role) => token.roles.has(role))
}

/** The record, without the tasks that the token may not view. */
export function instanceWithinLimits(token: Token | null, instance: InstanceDetails): InstanceDetails {
  if (token === null) return instance
  const tasks = instance.tasks?.filter((task) => isWithin(token.tasks, task.taskId) && mayView(token, task))
  return { ...instance, tasks: tasks ?? [] }
}

const limitedTicks = new WeakMap<Tick, Map<readonly string[], Tick>>()

/** The tick without events that the token does not cover: one object for all its watchers, written once. */
export function tickWithinLimits({ tasks }: Pick<Token, 'tasks'>, tick: Tick): Tick {
  if (tasks === null) return tick
  const known = limitedTicks.get(tick) ?? new Map<readonly string[], Tick>()
  limitedTicks.set(tick, known)
  const limitedTick = known.get(tasks) ?? coveredTick(tasks, tick)
  known.set(tasks, limitedTick)
  return limitedTick
}

function coveredTick(tasks: readonly string[], tick: Tick): Tick {
  const events = tick.events.filter((event) => {
    if (event.kind === 'task') return isWithin(tasks, event.row.facts.taskId)
    return event.kind === 'parked' ? isWithin(tasks, event.notice.taskId) : event.kind === 'reset'
  })
  return { ...tick, events }
}

export function requireWeightLimit(token: Token | null, weight: number | null | undefined): void {
  if (token === null || mayAccessOthers(token, 'operator') || (weight ?? 1) <= token.maxWeight) return
  throw limited(
    `the token may give tasks a weight of at most ${token.maxWeight}; an operator can raise it with maxWeight in the tokens file`,
  )
}

/** How much open work a call-back with this token may lead to; null for any amount. */
export const ownerLimits = (token: Token | null): OwnerLimits | null =>
  token === null || mayAccessOthers(token, 'operator')
    ? null
    : { openTasks: token.maxOpenTasks, waitingPartitions: token.maxWaitingPartitions }

export function refusedOpenWork({ limit, most, used }: OwnerLimited): RequestProblem {
  const [what, field] =
    limit === 'openTasks'
      ? ['open tasks', 'maxOpenTasks']
      : ['waiting partitions in its tasks', 'maxWaitingPartitions']
  return new RequestProblem(
    'open_work_limited',
    `the producer may have ${most} ${what} and has ${used}; nothing was stored. Try again when some are done, or let an operator raise ${field} in the tokens file`,
  )
}

/** Throws if the token is limited to other tasks, levels or tables than those of the call-back. */
export function requireCallBackLimits(token: Token | null, { taskId, partitions }: CallBack): void {
  requireTaskLimit(token, taskId)
  // Levels ascend.
  const [first] = partitions
  if (token !== null && first !== undefined && first.level < token.lowestLevel)
    throw limited(
      `the token may call back partitions on level ${token.lowestLevel} and above, and the element at /0 is on level ${first.level}; nothing was stored`,
    )
  if (token === null || token.tables === null) return
  const allowed = new Set(token.tables)
  const at = partitions.findIndex(({ computeTableName }) => !allowed.has(computeTableName))
  if (at === -1) return
  const table = partitions[at]?.computeTableName
  throw limited(
    `the token is limited to partitions of ${named(token.tables)}, and the element at /${at} has the table ${JSON.stringify(table)}; nothing was stored`,
  )
}

/** Restricts a pull to the tables it names, or else to those of the token. Throws if it names others. */
export function pullWithinLimits(token: Token | null, pull: PullRequest): PullRequest {
  if (token === null || token.tables === null) return pull
  const { tables } = token
  const outside = pull.tables?.find((table) => !tables.includes(table))
  if (outside !== undefined)
    throw limited(
      `the token is limited to partitions of ${named(tables)}, and the pull selects ${JSON.stringify(outside)}`,
    )
  return pull.tables === null ? { ...pull, tables } : pull
}

/** For leases that are returned again: the limits of the token may have changed since. */
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
  token === null || sharesTasks(token) || owners[0] === token.name

const mayView = (token: Token | null, task: OwnedTask): boolean =>
  mayAccessOthers(token, 'operator', 'viewer') || isOwn(token, task)

function named(texts: readonly string[]): string {
  const shown = texts.slice(0, MOST_NAMED).map((text) => JSON.stringify(text))
  const more = texts.length - shown.length
  return more > 0 ? `${shown.join(', ')} or ${more} others` : shown.join(' or ')
}

const limited = (detail: string) => new RequestProblem('token_limited', detail)
