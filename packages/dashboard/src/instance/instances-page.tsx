import type { InstanceStatus } from '@baton/protocol'
import { instanceStates } from '@baton/protocol/core'
import { refine } from '../current-route.ts'
import { CopyAs } from '../parts/copy.tsx'
import { Choice, Search } from '../parts/filters.tsx'
import { compact, counted, exact, percent, perSecond } from '../parts/format.ts'
import { Ago } from '../parts/moment.tsx'
import { Empty, Finding, Scrolling, Skeleton } from '../parts/panel.tsx'
import { InstanceBadge, instanceStateWords } from '../parts/states.tsx'
import { Head, Name } from '../parts/table.tsx'
import {
  type FleetRoute,
  type FleetSort,
  fleetRoute,
  fleetSorts,
  hrefOf,
  instanceHref,
  withQuery,
} from '../route.ts'
import { client } from '../service/connection.ts'
import { load, usePolled } from '../service/live.ts'
import { type Pages, readPages } from '../service/pages.ts'
import { chosenMembers, type Fleet, type FleetMember, failedAttempts, fleetOf } from './fleet.ts'

const READ_EVERY_MILLIS = 8000
const ROWS_SHOWN = 200
const BAD_NAMED = 3

const loadFleet = () =>
  readPages(async (from) => {
    const { instances, next } = await client.peek().instances(from)
    return { items: instances, next }
  })

/** Every instance, so that a bad host stands out from the fleet. */
export function InstancesPage({ at }: { at: FleetRoute }) {
  const { loaded } = usePolled(() => load(loadFleet), READ_EVERY_MILLIS)
  return (
    <main class="page" id="content">
      <header class="task-head">
        <h1 class="task-title">Instances</h1>
        <div class="buttons">
          <CopyAs path={withQuery('instances', { search: at.search, status: at.status })} />
        </div>
      </header>
      {loaded.kind === 'loading' ? <Skeleton lines={6} /> : null}
      {loaded.kind === 'failed' ? <Empty title={loaded.detail} /> : null}
      {loaded.kind === 'there' ? <Everyone loaded={loaded.value} at={at} /> : null}
    </main>
  )
}

function Everyone({
  loaded: { items: instances, hasMore },
  at,
}: {
  loaded: Pages<InstanceStatus>
  at: FleetRoute
}) {
  const workers = instances.filter(({ role, totals }) => role === 'worker' || totals.pulls > 0)
  const nodes = instances.filter(({ role }) => role === 'service')
  const producers = instances.filter((one) => !workers.includes(one) && one.role === 'producer')
  const fleet = fleetOf(workers)
  return (
    <>
      <BadHosts fleet={fleet} />
      <Filters at={at} />
      <Workers fleet={fleet} at={at} />
      <Others title="Nodes" members={nodes} at={at} what={nodeWords} />
      <Others title="Producers" members={producers} at={at} what={producerWords} />
      {hasMore ? (
        <p class="quiet">
          These are the first {exact(instances.length)}; search for the name of another one.
        </p>
      ) : null}
    </>
  )
}

const nodeWords = ({ version, leadsSince, load }: InstanceStatus) =>
  `${leadsSince === undefined ? 'follower' : 'leader'}, version ${version ?? 'unknown'}${load === undefined ? '' : `, ${percent(load * 100, 100)} busy`}`

const producerWords = ({ totals }: InstanceStatus) => `${counted(totals.calledBack, 'partition')} called back`

function BadHosts({ fleet: { members, medianFailed } }: { fleet: Fleet }) {
  const bad = members.filter(({ isBad, instance }) => isBad && instance.status !== 'down')
  if (bad.length === 0 || medianFailed === null) return null
  const named = chosenMembers({ members: bad, medianFailed, medianPace: null }, fleetRoute)
  return (
    <div class="findings">
      <Finding
        kind="warn"
        title={`${counted(bad.length, 'worker fails', 'workers fail')} far more often than the others`}
      >
        {named.slice(0, BAD_NAMED).map(({ instance: { instanceId }, failed }) => (
          <span class="gap" key={instanceId}>
            <a href={instanceHref(instanceId)}>{instanceId}</a>: {shareText(failed)} of its attempts failed or
            expired, the median is {shareText(medianFailed)}
          </span>
        ))}
      </Finding>
    </div>
  )
}

const shareText = (share: number | null) => (share === null ? '–' : percent(Math.round(share * 1000), 1000))

const sortWords: Readonly<Record<FleetSort, string>> = {
  failed: 'Failed first',
  pace: 'Fastest first',
  leases: 'Most leases first',
  name: 'By name',
}

function Filters({ at }: { at: FleetRoute }) {
  return (
    <div class="filter-bar">
      <Search
        label="Search instances by name"
        placeholder="Search instances"
        value={at.search}
        search={(search) => refine({ ...at, search })}
      />
      <Choice
        label="Status"
        none="Every status"
        value={at.status}
        options={instanceStates.map((state) => [state, instanceStateWords[state]])}
        choose={(status) => refine({ ...at, status })}
      />
      <Choice
        label="Order"
        value={at.sort}
        options={fleetSorts.map((sort) => [sort, sortWords[sort]])}
        choose={(sort) => refine({ ...at, sort: sort ?? fleetRoute.sort })}
      />
    </div>
  )
}

function Workers({ fleet, at }: { fleet: Fleet; at: FleetRoute }) {
  const chosen = chosenMembers(fleet, at)
  const isGone = ({ instance }: FleetMember) => instance.status === 'down'
  const there = at.status === 'down' ? chosen : chosen.filter((one) => !isGone(one))
  const gone = at.status === 'down' ? [] : chosen.filter(isGone)
  return (
    <section class="panel" aria-labelledby="workers-title">
      <header class="panel-head">
        <h2 id="workers-title">Workers</h2>
        <p class="muted">
          {counted(there.length, 'worker')}
          {fleet.medianFailed === null ? '' : `, median ${shareText(fleet.medianFailed)} failed`}
          {fleet.medianPace === null ? '' : `, ${perSecond(fleet.medianPace)} records/s`}
        </p>
      </header>
      {there.length === 0 ? (
        <p class="quiet">
          {fleet.members.length === 0
            ? 'No worker yet. A worker is listed when it pulls with X-Instance-Id.'
            : 'No worker matches.'}
        </p>
      ) : (
        <MemberTable members={there} label="Rows of workers" />
      )}
      {gone.length === 0 ? null : (
        <details class="gone">
          <summary>{counted(gone.length, 'worker that is gone', 'workers that are gone')}</summary>
          <MemberTable members={gone} label="Rows of workers that are gone" />
        </details>
      )}
    </section>
  )
}

function MemberTable({ members, label }: { members: readonly FleetMember[]; label: string }) {
  return (
    <>
      <Scrolling label={label}>
        <table class="fleet">
          <Head
            columns={[
              'Instance',
              'Status',
              ['Failed', 'number'],
              ['Records/s', 'number wide-only'],
              ['Done', 'number wide-only'],
              ['Leases', 'number wide-only'],
              ['Last seen', 'wide-only'],
            ]}
          />
          <tbody>
            {members.slice(0, ROWS_SHOWN).map((member) => (
              <MemberRow key={member.instance.instanceId} member={member} />
            ))}
          </tbody>
        </table>
      </Scrolling>
      {members.length > ROWS_SHOWN ? (
        <p class="quiet">and {counted(members.length - ROWS_SHOWN, 'other')}; search to find one</p>
      ) : null}
    </>
  )
}

function MemberRow({ member: { instance, pace, failed, isBad } }: { member: FleetMember }) {
  const { instanceId, status, totals, leases, lastSeenAt, pausedAt } = instance
  return (
    <tr class={isBad ? 'bad' : undefined}>
      <th scope="row">
        <Name text={instanceId} href={instanceHref(instanceId)} />
      </th>
      <td>
        <InstanceBadge state={status} />
        {pausedAt === undefined ? null : <span class="tag">paused</span>}
      </td>
      <td
        class={isBad ? 'number alarm' : 'number'}
        title={`${exact(failedAttempts(totals))} of ${exact(totals.done + failedAttempts(totals))} attempts failed or expired`}
      >
        {shareText(failed)}
      </td>
      <td class="number wide-only" title="taken per second, since it was first seen">
        {perSecond(pace)}
      </td>
      <td class="number wide-only">{compact(totals.done)}</td>
      <td class="number wide-only">{exact(leases)}</td>
      <td class="wide-only">
        <Ago at={lastSeenAt} />
      </td>
    </tr>
  )
}

interface OthersProps {
  readonly title: string
  readonly members: readonly InstanceStatus[]
  readonly at: FleetRoute
  readonly what: (instance: InstanceStatus) => string
}

/** Nodes and producers: few, and not compared with each other. */
function Others({ title, members, at, what }: OthersProps) {
  const { search, status } = at
  const chosen = members.filter(
    (one) => one.instanceId.includes(search) && (status === null || one.status === status),
  )
  const shown = status === null ? chosen.filter((one) => one.status !== 'down') : chosen
  if (chosen.length === 0) return null
  const gone = chosen.length - shown.length
  const id = `${title.toLowerCase()}-title`
  return (
    <section class="panel" aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{title}</h2>
      </header>
      <ul class="instances">
        {shown.slice(0, ROWS_SHOWN).map((instance) => (
          <li key={instance.instanceId}>
            <span class={`dot instance-${instance.status}`} aria-hidden="true" />
            <Name text={instance.instanceId} href={instanceHref(instance.instanceId)} />
            <span class="visually-hidden">{instanceStateWords[instance.status]}</span>
            <span class="instance-note">{what(instance)}</span>
          </li>
        ))}
      </ul>
      {gone === 0 ? null : (
        <p class="quiet">
          <a href={hrefOf({ ...at, status: 'down' })}>{exact(gone)} that went down</a>
        </p>
      )}
    </section>
  )
}
