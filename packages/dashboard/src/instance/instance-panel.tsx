import type { InstanceRole, InstanceStatus } from '@baton/protocol'
import { signal } from '@preact/signals'
import { compact, counted } from '../parts/format.ts'
import { Ago } from '../parts/moment.tsx'
import { Empty, Skeleton } from '../parts/panel.tsx'
import { instanceStateWords } from '../parts/states.tsx'
import { Name } from '../parts/table.tsx'
import { fleetRoute, hrefOf, instanceHref } from '../route.ts'
import { client, noteRefusal, tokenWanted } from '../service/connection.ts'
import { followLive, isAway } from '../service/live.ts'

const LOADED_AT_MOST = 500
/** State changes arrive as events. This interval is for the other numbers. */
const REFRESH_MILLIS = 8000

const instances = signal<readonly InstanceStatus[]>([])
const instancesLoad = signal<'loading' | 'loaded' | 'failed'>('loading')
const instancesBeyond = signal(false)

export function followInstances(): void {
  followLive({
    reload: () => void loadInstances(),
    onEvent: (event) => {
      if (event.name === 'instance') noteInstance(event.data)
    },
  })
  setInterval(() => {
    const isFirst = instancesLoad.peek() === 'loading'
    if (document.visibilityState === 'visible' && !isFirst && tokenWanted.peek() === 'no')
      void loadInstances()
  }, REFRESH_MILLIS)
}

function noteInstance(instance: InstanceStatus): void {
  const others = instances.peek().filter(({ instanceId }) => instanceId !== instance.instanceId)
  instances.value = [...others, instance].sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1))
}

async function loadInstances(): Promise<void> {
  try {
    const { instances: loaded, next } = await client.peek().instances({ limit: LOADED_AT_MOST })
    instances.value = loaded
    instancesBeyond.value = next !== null
    instancesLoad.value = 'loaded'
  } catch (error) {
    noteRefusal(error)
    if (instancesLoad.peek() === 'loading') instancesLoad.value = 'failed'
  }
}

const groups: readonly { readonly role: InstanceRole; readonly title: string }[] = [
  { role: 'service', title: 'Nodes' },
  { role: 'worker', title: 'Workers' },
  { role: 'producer', title: 'Producers' },
]
/** There may be hundreds of instances. Those with leases come first. */
const SHOWN_PER_GROUP = 12
/**
 * Instances that are down are kept for a week, and a program may use a new name at each start, so only the
 * latest are listed.
 */
const DOWN_SHOWN = 3

/** The instances and their states. */
export function InstancePanel() {
  return (
    <section class="panel" aria-labelledby="instances-title">
      <header class="panel-head">
        <h2 id="instances-title">Instances</h2>
        <p class="muted">{upOf(instances.value)}</p>
      </header>
      {instancesLoad.value === 'loading' ? <Skeleton lines={3} /> : null}
      {instancesLoad.value === 'failed' ? <Empty title="The instances could not be read." /> : null}
      {groups.map(({ role, title }) => (
        <Group key={role} title={title} members={instances.value.filter((one) => one.role === role)} />
      ))}
      {instancesBeyond.value ? <p class="quiet">There are more instances than are listed here.</p> : null}
    </section>
  )
}

function Group({ title, members }: { title: string; members: readonly InstanceStatus[] }) {
  if (members.length === 0) return null
  const inOrder = members.toSorted(byUse)
  const there = inOrder.filter(({ status }) => status !== 'down').slice(0, SHOWN_PER_GROUP)
  const gone = inOrder.filter(({ status }) => status === 'down').slice(0, DOWN_SHOWN)
  const shown = [...there, ...gone]
  const others = members.length - shown.length
  return (
    <>
      <h3 class="group-title">
        {title} <span class="muted">{upOf(members)}</span>
      </h3>
      <ul class="instances">
        {shown.map((instance) => (
          <InstanceRow key={instance.instanceId} instance={instance} />
        ))}
      </ul>
      {others > 0 ? (
        <p class="quiet">
          and <a href={hrefOf(fleetRoute)}>{counted(others, 'other')}</a>
        </p>
      ) : null}
    </>
  )
}

function InstanceRow({ instance }: { instance: InstanceStatus }) {
  const { instanceId, status, lastSeenAt } = instance
  return (
    <li>
      <span class={`dot instance-${status}`} aria-hidden="true" />
      <Name text={instanceId} href={instanceHref(instanceId)} />
      <span class="visually-hidden">{isAway.value ? 'Not known' : instanceStateWords[status]}</span>
      <span class="instance-note number">
        {status === 'down' ? (
          <>
            seen <Ago at={lastSeenAt} />
          </>
        ) : (
          doingOf(instance)
        )}
      </span>
    </li>
  )
}

function doingOf({ role, status, leases, totals, leadsSince }: InstanceStatus): string {
  if (role === 'service')
    return status === 'draining' ? 'draining' : leadsSince === undefined ? 'follower' : 'leader'
  if (status === 'silent' || status === 'lost') return `${status}, ${compact(leases)} leased`
  if (role === 'producer') return `${compact(totals.calledBack)} called back`
  return leases > 0 ? `${compact(leases)} leased` : 'idle'
}

function upOf(members: readonly InstanceStatus[]): string {
  const up = members.filter(({ status }) => status !== 'down' && status !== 'lost').length
  return members.length === 0 ? '' : `${up} of ${members.length} ${isAway.value ? 'were up' : 'up'}`
}

const GONE = 3

/**
 * Orders instances: lost and silent ones first, then those with leases, then the others that are up, then those
 * that are down, latest first.
 */
function byUse(a: InstanceStatus, b: InstanceStatus): number {
  const rank = ({ status, leases }: InstanceStatus) => {
    if (status === 'down') return GONE
    return status === 'lost' || status === 'silent' ? 0 : leases > 0 ? 1 : 2
  }
  if (rank(a) !== rank(b)) return rank(a) - rank(b)
  if (rank(a) === GONE && a.lastSeenAt !== b.lastSeenAt) return a.lastSeenAt < b.lastSeenAt ? 1 : -1
  return a.instanceId < b.instanceId ? -1 : 1
}
