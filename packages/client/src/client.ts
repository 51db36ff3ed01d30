import type {
  AuditList,
  CallBackAnswer,
  ControlAnswer,
  Grid,
  HeldLeaseList,
  InstanceAttemptList,
  InstanceList,
  InstanceStatus,
  ManifestLine,
  NodeAudit,
  PartitionDescriptor,
  PartitionList,
  PartitionReleaseAnswer,
  PulledPartition,
  ReleaseAnswer,
  RenewAnswer,
  Renewal,
  RetryRequest,
  Scale,
  SealRequest,
  SettleAnswer,
  Settlement,
  StreamEvent,
  TableList,
  TableSettingsAnswer,
  TableSettingsRequest,
  TableView,
  TaskFeed,
  TaskList,
  TaskSettingsAnswer,
  TaskSettingsRequest,
  TaskView,
  Throughput,
  Totals,
  Whoami,
} from '@baton/protocol'
import { settingText, settingWord } from '@baton/protocol/core'
import {
  type AuditOptions,
  type BatonClientOptions,
  type CallOptions,
  type Chosen,
  type GridOptions,
  type InstanceListOptions,
  type ManifestOptions,
  newIdempotencyKey,
  type PageOptions,
  type PartitionsOptions,
  type PullChoice,
  type Pulled,
  type PullOptions,
  type ScaleOptions,
  type SealableCallOptions,
  type SettleOptions,
  type TasksOptions,
  type ThroughputOptions,
} from './client-options.ts'
import { followEvents, textLines } from './event-stream.ts'
import { instancePath, segment, tablePath, taskPath } from './paths.ts'
import { persist } from './retry.ts'
import { Subscriptions } from './subscriptions.ts'
import { TableField } from './table-field.ts'
import {
  type Answer,
  type JsonRequestSpec,
  jsonText,
  parsed,
  type RequestSpec,
  retryAfterOf,
  Transport,
} from './transport.ts'

const DEFAULT_RETRY_FOR_SECONDS = 30

/**
 * All operations of the service as typed calls. A call is repeated where that is safe, and rejects with a
 * {@link BatonError}. `Producer` and `Worker` are built on it.
 */
export class BatonClient {
  readonly #transport: Transport
  readonly #table: TableField
  readonly #retryForSeconds: number
  readonly #onFailure: BatonClientOptions['onFailure']
  /** Subscriptions to events of tasks, delivered by webhook or read by the client. */
  readonly subscriptions = new Subscriptions((spec, options) => this.#call(spec, options))

  constructor(options: string | URL | BatonClientOptions) {
    const given: BatonClientOptions =
      typeof options === 'string' || options instanceof URL ? { url: options } : options
    this.#transport = new Transport(given)
    this.#table = new TableField(given.tableField)
    this.#retryForSeconds = given.retryForSeconds ?? DEFAULT_RETRY_FOR_SECONDS
    this.#onFailure = given.onFailure
  }

  /** The name of the table field on the wire. */
  get tableField(): TableField {
    return this.#table
  }

  /**
   * Sends one array in one request, all or nothing. `Producer` also checks the array, and splits one that is
   * too large.
   */
  async callBack<Fields extends object = object>(
    descriptors: readonly (PartitionDescriptor & NoInfer<Fields>)[],
    options: SealableCallOptions = {},
  ): Promise<CallBackAnswer> {
    // A value that is not an array is sent unchanged: the service explains the error.
    const wire = Array.isArray(descriptors)
      ? descriptors.map((descriptor) => this.#table.toWire(descriptor))
      : descriptors
    return this.callBackText(jsonText(wire, 'the call-back'), options)
  }

  /** The same for an array that is already JSON text. */
  async callBackText(json: string, options: SealableCallOptions = {}): Promise<CallBackAnswer> {
    const headers = { ...sealing(options.seal), ...setting(options) }
    const spec = { method: 'POST', path: '/call-back', body: json, headers, field: 'accepted' } as const
    return this.#call<CallBackAnswer>(spec, options)
  }

  /** Takes partitions under leases. */
  async pull<Fields extends object = object>(options: PullOptions = {}): Promise<Pulled<Fields>> {
    const { idempotencyKey = newIdempotencyKey(), waitSeconds } = options
    const headers = { ...preferring(options), 'idempotency-key': idempotencyKey }
    const query = choosing(options)
    const spec = { method: 'GET', path: '/pull', query, headers, waitSeconds, field: 'partitions' } as const
    const answer = await this.#ask(spec, options)
    const { partitions } = answer.body as { partitions: (PulledPartition & Fields)[] }
    return {
      partitions: partitions.map((partition) => this.#table.fromWire(partition)),
      retryAfterSeconds: retryAfterOf(answer.headers),
    }
  }

  /** Reports how the work under leases ended. */
  async settle(settlements: readonly Settlement[], options: SettleOptions = {}): Promise<SettleAnswer> {
    const { pull: requested, idempotencyKey = newIdempotencyKey() } = options
    // A filter without a batch size pulls one partition.
    const pull = requested !== undefined && isFilterOnly(requested) ? { ...requested, batch: 1 } : requested
    const headers = pull === undefined ? {} : { ...preferring(pull), 'idempotency-key': idempotencyKey }
    const waitSeconds = pull?.waitSeconds
    const body = jsonText(settlements, 'the settlement')
    const query = pull === undefined ? {} : choosing(pull)
    const sent = { query, headers, body, waitSeconds }
    const spec = { method: 'POST', path: '/settle', ...sent, field: 'settled' } as const
    const answer = await this.#call<SettleAnswer>(spec, options)
    return {
      ...answer,
      partitions: answer.partitions.map((partition) => this.#table.fromWire(partition)),
    }
  }

  /** Extends leases by their full duration from now. An object also says how far the work of a lease is. */
  async renew(leases: readonly (string | Renewal)[], options: CallOptions = {}): Promise<RenewAnswer> {
    const body = jsonText(leases, 'the list of leases')
    const spec = { method: 'POST', path: '/renew', body, field: 'renewed' } as const
    return this.#call<RenewAnswer>(spec, options)
  }

  /** The tasks, newest first. */
  async tasks(options: TasksOptions = {}): Promise<TaskList> {
    const { state, parked, search, cursor, limit } = options
    const query = { state, parked: parked ? 'true' : undefined, search, cursor, limit }
    return this.#get<TaskList>('/tasks', query, 'tasks', options)
  }

  /** Resolves when the service answers and its store accepts writes. Needs no token. */
  async ready(options: CallOptions = {}): Promise<void> {
    await this.#get('/readyz', {}, 'status', options)
  }

  /** The totals of all unfinished tasks. */
  async totals(options: CallOptions = {}): Promise<Totals> {
    return this.#get<Totals>('/totals', {}, 'complete', options)
  }

  /**
   * The backlog, the instances that work on it, and the number of workers that would finish it within a
   * target time.
   */
  async scale(options: ScaleOptions = {}): Promise<Scale> {
    const query = { ...choosing(options), target: options.targetSeconds }
    return this.#get<Scale>('/scale', query, 'desiredWorkers', options)
  }

  /** The state and progress of a task. */
  async task(taskId: string, options: CallOptions = {}): Promise<TaskView> {
    return this.#get<TaskView>(taskPath(taskId), {}, 'taskId', options)
  }

  /** The partitions of a task, by level and index unless `order` is given. */
  async partitions(taskId: string, options: PartitionsOptions = {}): Promise<PartitionList> {
    const { state, level, indexes, name, holder, reason, order, cursor, limit } = options
    const range = indexes === undefined ? undefined : `${indexes.first}-${indexes.last}`
    const query = { state, level, indexes: range, name, holder, reason, order, cursor, limit }
    const path = `${taskPath(taskId)}/partitions`
    const list = await this.#get<PartitionList>(path, query, 'partitions', options)
    return { ...list, partitions: list.partitions.map((row) => this.#table.fromWire(row)) }
  }

  /** What happened to a task, newest first. */
  async feed(taskId: string, options: CallOptions = {}): Promise<TaskFeed> {
    return this.#get<TaskFeed>(`${taskPath(taskId)}/feed`, {}, 'entries', options)
  }

  /** The throughput of a task, by minute or by hour. */
  async throughput(taskId: string, options: ThroughputOptions = {}): Promise<Throughput> {
    const { step, from, to, by } = options
    const query = { step, from: timeText(from), to: timeText(to), by }
    return this.#get<Throughput>(`${taskPath(taskId)}/throughput`, query, 'points', options)
  }

  /** The throughput of all tasks together, by minute or by hour. */
  async throughputOfAll(options: Omit<ThroughputOptions, 'by'> = {}): Promise<Throughput> {
    const { step, from, to } = options
    const query = { step, from: timeText(from), to: timeText(to) }
    return this.#get<Throughput>('/throughput', query, 'points', options)
  }

  /** The name and the roles with which the service sees this client. */
  async whoami(options: CallOptions = {}): Promise<Whoami> {
    return this.#get<Whoami>('/whoami', {}, 'roles', options)
  }

  /** The states of the partitions of one level, counted by ranges of indexes. */
  async grid(taskId: string, options: GridOptions = {}): Promise<Grid> {
    const { level, cells } = options
    return this.#get<Grid>(`${taskPath(taskId)}/grid`, { level, cells }, 'cells', options)
  }

  /**
   * Streams the partitions of a task: all of them, or those of a state or level. Use it for audits, or to
   * process parked partitions elsewhere. The request is not repeated.
   */
  async *manifest(
    taskId: string,
    options: ManifestOptions = {},
  ): AsyncGenerator<ManifestLine, void, undefined> {
    const { state, level } = options
    const path = `${taskPath(taskId)}/manifest`
    const spec = { method: 'GET', path, query: { state, level }, ...limits(options) } as const
    const body = await this.#persist(() => this.#transport.stream(spec), options)
    for await (const line of textLines(body, options)) {
      if (line !== '') yield this.#table.fromWire(parsed(line, 200, 'partition_name') as ManifestLine)
    }
  }

  /**
   * Streams the events of the service from now on: task progress, parked partitions, instances that start and
   * stop. Reconnects when the connection breaks. After a `reset` event, some events may be missing.
   */
  events(options: CallOptions = {}): AsyncGenerator<StreamEvent, void, undefined> {
    const open = (lastEventId: string | undefined) => {
      const headers = {
        accept: 'text/event-stream',
        ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
      }
      const spec = { method: 'GET', path: '/events', headers, ...limits(options) } as const
      return this.#persist(() => this.#transport.stream(spec), options)
    }
    return followEvents(open, options.signal)
  }

  /** Stops handing out partitions of a task. Existing leases remain valid. */
  async pause(taskId: string, options: CallOptions = {}): Promise<ControlAnswer> {
    return this.#control(taskId, 'pause', undefined, options)
  }

  async resume(taskId: string, options: CallOptions = {}): Promise<ControlAnswer> {
    return this.#control(taskId, 'resume', undefined, options)
  }

  /** Cancels every partition of a task that is not done. Their leases are lost. */
  async cancel(taskId: string, options: CallOptions = {}): Promise<ControlAnswer> {
    return this.#control(taskId, 'cancel', undefined, options)
  }

  /**
   * Retries parked partitions with new attempts: all, those of a level, those parked for a reason, or those
   * named. A call with `done` is tried once unless `retryForSeconds` is given, because a repetition would
   * rerun partitions that finished since the first try.
   */
  async retry(taskId: string, which: RetryRequest = {}, options: CallOptions = {}): Promise<ControlAnswer> {
    const { retryForSeconds = which.done === true ? 0 : undefined } = options
    return this.#control(taskId, 'retry', which, { ...options, retryForSeconds })
  }

  /**
   * Declares that no more partitions will follow, and optionally their total number. The task then shows how
   * many are missing.
   */
  async seal(taskId: string, expected: SealRequest = {}, options: CallOptions = {}): Promise<ControlAnswer> {
    return this.#control(taskId, 'seal', expected, options)
  }

  /** Opens the level barrier although partitions of a lower level are parked. */
  async skipParked(taskId: string, options: CallOptions = {}): Promise<ControlAnswer> {
    return this.#control(taskId, 'skip-parked', undefined, options)
  }

  /** Enables or disables the level barrier: each level waits until all lower levels are done. */
  async levelBarrier(taskId: string, enabled: boolean, options: CallOptions = {}): Promise<ControlAnswer> {
    return this.#control(taskId, 'level-barrier', { enabled }, options)
  }

  /** Gives the task to another producer, by the name of its token. */
  async changeOwner(taskId: string, name: string, options: CallOptions = {}): Promise<ControlAnswer> {
    return this.#control(taskId, 'owner', { name }, options)
  }

  /** The settings that apply to a task, and which of them are its own. */
  async settings(taskId: string, options: CallOptions = {}): Promise<TaskSettingsAnswer> {
    return this.#get<TaskSettingsAnswer>(`${taskPath(taskId)}/settings`, {}, 'settings', options)
  }

  /**
   * Changes the named settings of a task: leases, attempts, back-off, barrier, limit, share. Null goes back to
   * the value of the service. May be called before the first call-back of the task,
   * with an operator's token.
   */
  async changeSettings(
    taskId: string,
    settings: TaskSettingsRequest,
    options: CallOptions = {},
  ): Promise<TaskSettingsAnswer> {
    return this.#change<TaskSettingsAnswer>(taskPath(taskId), settings, options)
  }

  /** The status of an instance; without a name, of the node that answers. */
  async instanceStatus(instanceId?: string, options: CallOptions = {}): Promise<InstanceStatus> {
    return this.#get<InstanceStatus>('/test/instance-status', { instanceId }, 'instanceId', options)
  }

  /** All known instances, by name, or those that match. A short page is not necessarily the last one. */
  async instances(options: InstanceListOptions = {}): Promise<InstanceList> {
    const { cursor, limit, search, status, sort } = options
    const query = { cursor, limit, search, status, sort }
    return this.#get<InstanceList>('/instances', query, 'instances', options)
  }

  /** The leases that an instance holds, the first to expire first. */
  async instanceLeases(instanceId: string, options: PageOptions = {}): Promise<HeldLeaseList> {
    const { cursor, limit } = options
    const path = `${instancePath(instanceId)}/leases`
    const page = await this.#get<HeldLeaseList>(path, { cursor, limit }, 'leases', options)
    return { ...page, leases: page.leases.map((lease) => this.#table.fromWire(lease)) }
  }

  /** The last attempts of an instance, the last to end first, since the node that leads took over. */
  async instanceAttempts(instanceId: string, options: CallOptions = {}): Promise<InstanceAttemptList> {
    const path = `${instancePath(instanceId)}/attempts`
    const list = await this.#get<InstanceAttemptList>(path, {}, 'attempts', options)
    return { ...list, attempts: list.attempts.map((attempt) => this.#table.fromWire(attempt)) }
  }

  /** Hands out nothing to an instance until it is resumed. Its leases are not affected. */
  async pauseInstance(instanceId: string, options: CallOptions = {}): Promise<InstanceStatus> {
    return this.#instanceControl<InstanceStatus>(instanceId, 'pause', 'instanceId', options)
  }

  async resumeInstance(instanceId: string, options: CallOptions = {}): Promise<InstanceStatus> {
    return this.#instanceControl<InstanceStatus>(instanceId, 'resume', 'instanceId', options)
  }

  /** The compute tables with open work or settings, by name. */
  async tables(options: PageOptions = {}): Promise<TableList> {
    const { cursor, limit } = options
    return this.#get<TableList>('/tables', { cursor, limit }, 'tables', options)
  }

  /** What runs and waits on a compute table over all tasks, and its settings. */
  async table(table: string, options: CallOptions = {}): Promise<TableView> {
    return this.#get<TableView>(tablePath(table), {}, 'table', options)
  }

  async tableSettings(table: string, options: CallOptions = {}): Promise<TableSettingsAnswer> {
    return this.#get<TableSettingsAnswer>(`${tablePath(table)}/settings`, {}, 'settings', options)
  }

  /**
   * Limits the leases of a compute table over all tasks, or pauses it. Settings that are not named stay as they
   * are; null restores the default. May be called before the table is first called back.
   */
  async changeTableSettings(
    table: string,
    settings: TableSettingsRequest,
    options: CallOptions = {},
  ): Promise<TableSettingsAnswer> {
    return this.#change<TableSettingsAnswer>(tablePath(table), settings, options)
  }

  /** What was changed by requests, and by whom, newest first: of one task or one sender, or all. */
  async audit(options: AuditOptions = {}): Promise<AuditList> {
    const { task, name, cursor, limit } = options
    return this.#get<AuditList>('/audit', { task, name, cursor, limit }, 'entries', options)
  }

  /** Refused tokens and reloaded files of the node that answers, since its start, newest first. */
  async nodeAudit(options: PageOptions = {}): Promise<NodeAudit> {
    const { cursor, limit } = options
    return this.#get<NodeAudit>('/audit/node', { cursor, limit }, 'entries', options)
  }

  /**
   * Revokes all leases of an instance that will not recover by itself. Their partitions become ready at
   * once. Each revoked lease counts as an attempt, like an expiry.
   */
  async releaseInstance(instanceId: string, options: CallOptions = {}): Promise<ReleaseAnswer> {
    return this.#instanceControl<ReleaseAnswer>(instanceId, 'release', 'released', options)
  }

  /** Revokes the lease of one partition in the same way. */
  async releasePartition(
    taskId: string,
    partitionName: string,
    options: CallOptions = {},
  ): Promise<PartitionReleaseAnswer> {
    const path = `${taskPath(taskId)}/partitions/${segment(partitionName, 'partition name')}/release`
    return this.#call<PartitionReleaseAnswer>({ method: 'POST', path, field: 'released' }, options)
  }

  #instanceControl<T>(instanceId: string, verb: string, field: string, options: CallOptions): Promise<T> {
    return this.#call({ method: 'POST', path: `${instancePath(instanceId)}/${verb}`, field }, options)
  }

  #control(taskId: string, verb: string, body: object | undefined, options: CallOptions) {
    const spec = { method: 'POST', path: `${taskPath(taskId)}/${verb}`, field: 'taskId' } as const
    const whole = body === undefined ? spec : { ...spec, body: jsonText(body, 'the request') }
    return this.#call<ControlAnswer>(whole, options)
  }

  #change<T>(path: string, settings: object, options: CallOptions): Promise<T> {
    const body = jsonText(settings, 'the settings')
    return this.#call({ method: 'PATCH', path: `${path}/settings`, body, field: 'settings' }, options)
  }

  #get<T>(path: string, query: JsonRequestSpec['query'], field: string, options: CallOptions): Promise<T> {
    return this.#call({ method: 'GET', path, query, field }, options)
  }

  async #call<T>(spec: JsonRequestSpec, options: CallOptions): Promise<T> {
    return (await this.#ask(spec, options)).body as T
  }

  #ask(spec: JsonRequestSpec, options: CallOptions): Promise<Answer> {
    const { traceparent } = options
    const traced = traceparent === undefined ? spec : { ...spec, headers: { ...spec.headers, traceparent } }
    return this.#persist(() => this.#transport.json({ ...traced, ...limits(options) }), options)
  }

  #persist<T>(attempt: () => Promise<T>, options: CallOptions): Promise<T> {
    const { retryForSeconds, signal, onFailure = this.#onFailure } = options
    const forMillis = (retryForSeconds ?? this.#retryForSeconds) * 1000
    return persist(attempt, { forMillis, signal, onFailure })
  }
}

function limits({ signal, timeoutSeconds }: CallOptions): Pick<RequestSpec, 'signal' | 'timeoutMillis'> {
  return { signal, timeoutMillis: timeoutSeconds === undefined ? undefined : timeoutSeconds * 1000 }
}

function setting({ settings }: SealableCallOptions): Record<string, string> {
  const given = Object.entries(settings ?? {}).filter(([, value]) => value !== undefined)
  const items = given.map(([name, value]) => `${settingWord(name)}=${settingText(value)}`)
  return items.length === 0 ? {} : { 'task-settings': items.join(', ') }
}

function choosing({ tables, tasks }: Chosen): NonNullable<RequestSpec['query']> {
  return { table: tables, task: tasks }
}

const isFilterOnly = ({ tables, tasks, batch, records, waitSeconds }: PullChoice): boolean =>
  (tables !== undefined || tasks !== undefined) &&
  [batch, records, waitSeconds].every((amount) => amount === undefined)

const timeText = (time: Date | string | undefined) => (time instanceof Date ? time.toISOString() : time)

function sealing(seal: SealableCallOptions['seal']): Record<string, string> {
  return seal === undefined || seal === false ? {} : { 'baton-seal': String(seal) }
}

function preferring({ batch, records, waitSeconds }: PullChoice): Record<string, string> {
  const preferences = Object.entries({ batch, records, wait: waitSeconds })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${value}`)
  return preferences.length === 0 ? {} : { prefer: preferences.join(', ') }
}

/** The address of a service: its URL, client options, or an existing client. */
export type ServiceAddress = string | URL | BatonClientOptions | BatonClient

export function clientOf(service: ServiceAddress): BatonClient {
  return service instanceof BatonClient ? service : new BatonClient(service)
}
