import { silenceAllowed, statusOf } from '../../instance-status.ts'
import { leaseMillis, policyOf } from '../../rules/policy.ts'
import type {
  ActiveInstancesQuery,
  InstanceDetails,
  InstanceLeasesPage,
  InstanceLeasesQuery,
  InstancePage,
  InstancePosition,
  InstanceQuery,
  InstanceRecord,
} from '../../views/queries.ts'
import { checkpointsOf, workOf } from '../checkpoints.ts'
import { namedOf } from '../lease-changes.ts'
import type { ViewSource } from './view-source.ts'

// Views of instances. Their rows are on disk, their leases in memory.

/** Bounds the cost of a page that leaves out most instances. */
const INSTANCES_SEARCHED = 2000

export async function readInstance(source: ViewSource, instanceId: string): Promise<InstanceDetails | null> {
  const record = await source.disk.instance(instanceId)
  return record === null ? null : withLeases(source, record)
}

export async function readInstances(source: ViewSource, query: InstanceQuery): Promise<InstancePage> {
  const { names, limit, sort = 'name', search = null, status = null } = query
  if (names !== undefined) {
    const records = await source.disk.instances({ names })
    return { instances: records.map((record) => withLeases(source, record)), next: null }
  }
  const read = sort === 'leases' ? readByLeases : readRows
  const instances: InstanceDetails[] = []
  let after = query.after
  for (let searched = 0; searched < INSTANCES_SEARCHED; ) {
    const page = await read(source, query, after)
    for (const { record, at } of page.records) {
      if (instances.length === limit) return { instances, next: after }
      after = at
      const instance = withLeases(source, record)
      // It was listed before the rest.
      if (page.isRest && source.memory.leases.countOf(instance.instanceId) > 0) continue
      if (search !== null && !instance.instanceId.includes(search)) continue
      if (status === null || statusOf(instance) === status) instances.push(instance)
    }
    if (page.isEnd) return { instances, next: null }
    searched += page.records.length
    after = page.next ?? after
  }
  return { instances, next: after }
}

export async function readActive(
  { disk, memory, now }: ViewSource,
  { activeMillis, limit }: ActiveInstancesQuery,
): Promise<string[]> {
  const seen = await disk.activeInstances(now - activeMillis, limit)
  return [...new Set([...memory.leases.holders.map(({ name }) => name), ...seen])].slice(0, limit)
}

interface Records {
  /** With their positions when they were read: leases end at any time. */
  readonly records: readonly { readonly record: InstanceRecord; readonly at: InstancePosition }[]
  /** Where the next ones begin, if not after the last of these. */
  readonly next?: InstancePosition
  /** Of a list by leases: the instances without leases, by name. */
  readonly isRest: boolean
  readonly isEnd: boolean
}

async function readRows(
  { disk }: ViewSource,
  { limit, sort }: InstanceQuery,
  after: InstancePosition | null,
): Promise<Records> {
  const order = sort === 'lastSeenAt' ? sort : 'name'
  const records = await disk.instances({ sort: order, after, limit: limit + 1 })
  const positioned = records.map((record) => {
    const { instanceId: name, lastSeenAt } = record
    return { record, at: { value: order === 'name' ? 0 : lastSeenAt, name } }
  })
  return { records: positioned, isRest: false, isEnd: records.length <= limit }
}

/** Holders are in memory; the other instances follow, by name. */
async function readByLeases(
  source: ViewSource,
  { limit }: InstanceQuery,
  after: InstancePosition | null,
): Promise<Records> {
  if (after === null || after.value > 0) {
    const holders = source.memory.leases.holders
      .filter(
        ({ leases, name }) =>
          after === null || leases < after.value || (leases === after.value && name > after.name),
      )
      .toSorted((a, b) => b.leases - a.leases || (a.name < b.name ? -1 : 1))
      .slice(0, limit + 1)
    const records = await source.disk.instances({ names: holders.map(({ name }) => name) })
    const byId = new Map(records.map((record) => [record.instanceId, record]))
    const last = holders.at(-1)
    return {
      records: holders.flatMap(({ name, leases: value }) => {
        const record = byId.get(name)
        return record === undefined ? [] : [{ record, at: { value, name } }]
      }),
      next:
        holders.length <= limit || last === undefined
          ? { value: 0, name: '' }
          : { value: last.leases, name: last.name },
      isRest: false,
      isEnd: false,
    }
  }
  return { ...(await readRows(source, { after, limit, sort: 'name' }, after)), isRest: true }
}

/** A lease that has ended and was not swept yet may be renewed: it does not count, but its holder is silent. */
function withLeases({ memory, policy, leader, now }: ViewSource, record: InstanceRecord): InstanceDetails {
  let leases = 0
  let silentAfterMillis: number | null = null
  for (const { parentLane, recordCount, dueAt } of memory.leases.of(record.instanceId)) {
    const { parentTask: task } = parentLane
    if (task.cancelled || dueAt === null) continue
    if (dueAt > now) leases += 1
    const millis = leaseMillis(policyOf(policy, task), recordCount)
    const allowed = silenceAllowed(millis)
    if (now >= dueAt - (millis - allowed)) silentAfterMillis = Math.min(silentAfterMillis ?? allowed, allowed)
  }
  const leadsSince = record.instanceId === leader.node ? leader.since : null
  return { ...record, leases, silentAfterMillis, leadsSince, now }
}

export async function heldLeases(
  { disk, memory, now }: ViewSource,
  { instanceId, after, limit }: InstanceLeasesQuery,
): Promise<InstanceLeasesPage> {
  const held = memory.leases
    .heldBy(instanceId, Number.POSITIVE_INFINITY)
    .filter(({ dueAt, id, parentLane }) => {
      if (dueAt === null || dueAt <= now || parentLane.parentTask.cancelled) return false
      return after === null || dueAt > after.dueAt || (dueAt === after.dueAt && id > after.id)
    })
  const page = held.slice(0, limit)
  const last = page.at(-1)
  const checkpoints = await checkpointsOf(memory, disk, page)
  return {
    leases: page.map((partition) => ({
      ...namedOf(partition),
      attempt: partition.attempts + 1,
      leasedAt: partition.leasedAt ?? now,
      expiresAt: partition.dueAt ?? now,
      ...workOf(partition, checkpoints),
    })),
    next: held.length > limit && last !== undefined ? { dueAt: last.dueAt ?? 0, id: last.id } : null,
  }
}
