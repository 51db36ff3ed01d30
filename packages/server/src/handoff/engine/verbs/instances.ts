import type { InstanceSort } from '@baton/protocol'
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
import type { Memory } from '../state/memory.ts'
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
  const shown = (records: readonly InstanceRecord[]) => records.map((record) => withLeases(source, record))
  if (names !== undefined) return { instances: shown(await source.disk.instances({ names })), next: null }
  const read = sort === 'leases' ? readByLeases : readRows
  const instances: InstanceDetails[] = []
  let after = query.after
  for (let searched = 0; searched < INSTANCES_SEARCHED; ) {
    const page = await read(source, query, after)
    for (const instance of shown(page.records)) {
      if (instances.length === limit) return { instances, next: after }
      after = positionOf(source.memory, instance, sort)
      // The rest of a list by leases is read by name.
      if (sort === 'leases' && page.byName && after.value > 0) {
        after = { value: 0, name: instance.instanceId }
        continue
      }
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
  readonly records: readonly InstanceRecord[]
  /** Where the next ones begin, if not after the last of these. */
  readonly next?: InstancePosition
  readonly byName: boolean
  readonly isEnd: boolean
}

async function readRows(
  { disk }: ViewSource,
  { limit, sort }: InstanceQuery,
  after: InstancePosition | null,
): Promise<Records> {
  const order = sort === 'lastSeenAt' ? sort : 'name'
  const records = await disk.instances({ sort: order, after, limit: limit + 1 })
  return { records, byName: order === 'name', isEnd: records.length <= limit }
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
    const rank = new Map(holders.map(({ name }, index) => [name, index]))
    const last = holders.at(-1)
    return {
      records: records.toSorted((a, b) => (rank.get(a.instanceId) ?? 0) - (rank.get(b.instanceId) ?? 0)),
      next:
        holders.length <= limit || last === undefined
          ? { value: 0, name: '' }
          : { value: last.leases, name: last.name },
      byName: false,
      isEnd: false,
    }
  }
  return readRows(source, { after, limit, sort: 'name' }, after)
}

function positionOf(
  { leases }: Memory,
  { instanceId: name, lastSeenAt }: InstanceDetails,
  sort: InstanceSort,
): InstancePosition {
  if (sort === 'lastSeenAt') return { value: lastSeenAt, name }
  return { value: sort === 'leases' ? leases.countOf(name) : 0, name }
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
