import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { type CallBack, quoted } from '@baton/protocol'
import type { Tick } from '../../handoff/events.ts'
import type { PulledPartition } from '../../handoff/partition.ts'
import type { OwnerLimited, OwnerLimits, TooManyLanes } from '../../handoff/rules/open-work-limits.ts'
import type { PullRequest } from '../../handoff/store.ts'
import type { InstanceDetails } from '../../handoff/views/queries.ts'
import { type Problem, RequestProblem } from '../answers/problems.ts'
import { remembered } from '../remembered.ts'

/** What is known about the sender of a request from its token. */
export interface Token {
  readonly name: string
  readonly roles: ReadonlySet<string>
  /** Prefixes of task ids to which the token is limited; null for no limit. */
  readonly tasks: readonly string[] | null
  /** Compute tables to which the token is limited; null for no limit. */
  readonly tables: readonly string[] | null
  /** The largest weight that a producer may give to a task. */
  readonly maxWeight: number
  /** The lowest level number that a producer may call back. */
  readonly lowestLevel: number
  /** How many open tasks a producer may have. */
  readonly maxOpenTasks: number
  /** How many waiting partitions the tasks of a producer may have. */
  readonly maxWaitingPartitions: number
}

/** The role of the users of a group, who sign in at a proxy. */
export interface KnownGroup extends KnownToken {
  readonly group: string
}

/** Finds the token of a request. */
export interface TokenLookup {
  /**
   * Returns null only in a service without tokens. Throws a problem if the token was revoked after admission,
   * because null would mean that there are no limits.
   */
  of(headers: IncomingHttpHeaders): Token | null
  /** The name of the token, for logs and counts; null without a valid token. */
  nameOf(headers: IncomingHttpHeaders): string | null
  /** Calls `end` when the token of the request is revoked. The returned function cancels that. */
  watch(headers: IncomingHttpHeaders, end: () => void): () => void
}

/** For a service without tokens. */
export const noTokens: TokenLookup = {
  of: () => null,
  nameOf: () => null,
  watch: () => () => undefined,
}

/** The token of an Authorization header; undefined when it has none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^Bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1]
}

export const roles = ['producer', 'worker', 'operator', 'viewer'] as const
export type Role = (typeof roles)[number]

/** One entry of the tokens file. Entries with the same name are one identity with several tokens. */
export interface KnownToken extends Token {
  /** SHA-256 of the token in hex. */
  readonly digest: string
  readonly roles: ReadonlySet<Role>
}

const LONGEST_AUTHORIZATION_REMEMBERED = 512

/** The tokens of one version of the file. */
export class Tokens {
  readonly #byDigest: ReadonlyMap<string, KnownToken>
  readonly #groups: readonly KnownGroup[]
  /**
   * Hashing is the most expensive part of admission. Only valid tokens are remembered, so that requests with
   * others do not displace them.
   */
  readonly #byHeader = remembered((authorization) => {
    const token = bearerToken(authorization)
    return token === undefined ? undefined : this.find(token)
  }, LONGEST_AUTHORIZATION_REMEMBERED)

  constructor(known: readonly KnownToken[], groups: readonly KnownGroup[] = []) {
    this.#byDigest = new Map(known.map((token) => [token.digest, token]))
    this.#groups = groups
  }

  get all(): Iterable<KnownToken> {
    return [...this.#byDigest.values(), ...this.#groups]
  }

  /** The first group of the file that a user has. Roles of several are not joined: each has its own limits. */
  ofGroups(groups: readonly string[]): KnownGroup | undefined {
    return this.#groups.find(({ group }) => groups.includes(group))
  }

  /** Looks a token up by its digest, so that the time it takes reveals nothing about valid tokens. */
  find(token: string): KnownToken | undefined {
    return this.#byDigest.get(digestOf(token))
  }

  ofHeader(authorization: string | undefined): KnownToken | undefined {
    return authorization === undefined ? undefined : this.#byHeader(authorization)
  }

  /** Returns these tokens, but reuses the entries of `earlier` that did not change. */
  keeping(earlier: Tokens): Tokens {
    const kept = <Kind extends KnownToken>(before: Kind | undefined, now: Kind): Kind =>
      before !== undefined && described(before) === described(now) ? before : now
    return new Tokens(
      [...this.#byDigest.values()].map((token) => kept(earlier.#byDigest.get(token.digest), token)),
      this.#groups.map((group) =>
        kept(
          earlier.#groups.find((one) => one.group === group.group),
          group,
        ),
      ),
    )
  }

  has(token: KnownToken): boolean {
    return this.#byDigest.get(token.digest) === token || this.#groups.some((group) => group === token)
  }
}

/** Tokens with the same description have the same rights. */
export const described = ({ roles: granted, ...token }: KnownToken): string =>
  JSON.stringify({ ...token, roles: [...granted].toSorted() })

export function digestOf(token: string): string {
  return hash('sha256', token, 'hex')
}

export const UNKNOWN_TOKEN: Problem = {
  code: 'token_unknown',
  detail: 'the service does not know this token',
  options: { headers: { 'www-authenticate': 'Bearer realm="Baton", error="invalid_token"' } },
}

/** The problem for a request whose token was revoked after admission. */
export function revoked(): RequestProblem {
  const { code, detail, options = {} } = UNKNOWN_TOKEN
  return new RequestProblem(code, detail, options)
}

/** The fields of a task that decide who may see it. */
interface OwnedTask {
  readonly taskId: string
  /** Names of the tokens that called it back. The first one owns it. */
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

/** Throws if a producer views a task of another producer. */
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

/**
 * A task that nobody has called back may become that of another producer, and counts as an open task of nobody.
 */
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

/** Whether a list may show the task with this token. */
export function isWithinLimit(token: Token | null, taskId: string): boolean {
  return token === null || isWithin(token.tasks, taskId)
}

/** Whether the token may access tasks that others called back. */
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

/**
 * The tick, without the events that the token does not cover. Instances belong to no task, so their events
 * are removed for a limited token. All watchers with the token get the same object, which is written once.
 */
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

/** Throws if a producer may not give a task this weight. */
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
      `the token is limited to partitions of ${named(tables)}, and the pull selects ${JSON.stringify(outside)}`,
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
  token === null || sharesTasks(token) || owners[0] === token.name

const mayView = (token: Token | null, task: OwnedTask): boolean =>
  mayAccessOthers(token, 'operator', 'viewer') || isOwn(token, task)

function named(texts: readonly string[]): string {
  const shown = texts.slice(0, MOST_NAMED).map((text) => JSON.stringify(text))
  const more = texts.length - shown.length
  return more > 0 ? `${shown.join(', ')} or ${more} others` : shown.join(' or ')
}

const limited = (detail: string) => new RequestProblem('token_limited', detail)
