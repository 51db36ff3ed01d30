import { scaleOf } from '../../handoff/counts/scale.ts'
import { MOST_TASKS } from '../../handoff/counts/store-readings.ts'
import { unfinishedStates } from '../../handoff/rules/life-cycle.ts'
import type { StoreVerb } from '../../handoff/store.ts'
import type { ViewedCounts } from '../../handoff/views/view-state.ts'
import { version } from '../../version.ts'
import { by, counter, gauge, histogram, type Metric, type MetricSources, type Sample } from './metric.ts'

/** Concurrent use of this node, and how often limits were reached. */
const limitMetrics: readonly Metric[] = [
  gauge('baton_connections', 'open connections', ({ limiter }) => limiter.connections.count),
  gauge(
    'baton_received_bytes',
    'request bodies that were received and are not answered yet',
    ({ limiter }) => limiter.received.held,
  ),
  gauge(
    'baton_unsent_bytes',
    'responses that clients have not received yet, sampled once per second',
    ({ limiter }) => limiter.unread.unsentBytes,
  ),
  counter('baton_bounds_met_total{bound}', 'how often a limit for clients was reached', ({ limiter }) =>
    by(limiter.reached.counts),
  ),
]

const requestMetrics: readonly Metric[] = [
  counter(
    'baton_requests_total{method,route,status}',
    'requests answered; route is page for the page and its files, and none for requests without a route',
    function* ({ requests }) {
      for (const { method, route, statuses } of requests.routes())
        for (const [status, count] of statuses) yield [[method, route, String(status)], count]
    },
  ),
  histogram(
    'baton_request_duration_seconds{method,route}',
    'time from a request to its response; pulls that waited for partitions are excluded',
    function* ({ requests }) {
      for (const { method, route, statuses, seconds } of requests.routes())
        if (statuses.size > 0) yield [[method, route], seconds]
    },
  ),
  counter(
    'baton_forwarded_requests_total',
    'requests that this node forwarded to the leader, which counts them by route',
    ({ requests }) => requests.forwarded,
  ),
  gauge('baton_waiting_pulls', 'pulls that wait for partitions', ({ handOff }) => handOff.waitingPulls),
  gauge('baton_event_streams', 'open event streams', ({ handOff }) => handOff.changeStream.watchers),
]

const nodeMetrics: readonly Metric[] = [
  gauge('baton_ready', '1 if the node can hand off; the same as /readyz', ({ handOff, store }) =>
    Number(store.canCommit && !handOff.isDraining),
  ),
  gauge('baton_leader', '1 if the node is the leader; a single node is always the leader', ({ handOff }) =>
    Number(handOff.leads),
  ),
  gauge('baton_draining', '1 if the node is shutting down', ({ handOff }) => Number(handOff.isDraining)),
  histogram(
    'baton_event_loop_delay_seconds',
    'delay of the event loop, sampled ten times per second',
    ({ eventLoopDelay }) => [[[], eventLoopDelay]],
  ),
  counter(
    'baton_event_loop_busy_seconds_total',
    'time that the event loop was busy; at a rate of 1 the node is saturated',
    () => performance.eventLoopUtilization().active / 1000,
  ),
  counter('baton_process_cpu_seconds_total{mode}', 'CPU time of the process, user or system', () => {
    const { user, system } = process.cpuUsage()
    return by({ user: user / 1e6, system: system / 1e6 })
  }),
  gauge('baton_process_resident_memory_bytes', 'resident memory of the process', () =>
    process.memoryUsage.rss(),
  ),
  gauge(
    'baton_process_heap_used_bytes',
    'memory used by JavaScript objects',
    () => process.memoryUsage().heapUsed,
  ),
  gauge(
    'baton_process_timers',
    'active timers of waiting pulls, idle connections and the service itself',
    () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length,
  ),
  gauge(
    'baton_process_start_time_seconds',
    'start time of the process, since 1970',
    () => performance.timeOrigin / 1000,
  ),
  gauge('baton_build_info{version,node}', 'always 1, with the versions of Baton and of Node', () => [
    [[version, process.versions.node], 1],
  ]),
]

/** Partitions and leases on this node. */
const handOffMetrics: readonly Metric[] = [
  counter(
    'baton_called_back_partitions_total{result}',
    'partitions that were called back: accepted, or a duplicate of one accepted before',
    ({ handOff }) => by(handOff.counts.calledBack),
  ),
  counter(
    'baton_pulls_total{answer}',
    'pulls answered, including those of a settle: with partitions, empty, or repeated with the same key',
    ({ handOff }) => by(handOff.counts.pulls),
  ),
  counter(
    'baton_handed_out_partitions_total',
    'partitions handed out',
    ({ handOff }) => handOff.counts.handedOut.partitions,
  ),
  counter(
    'baton_handed_out_records_total',
    'records of the partitions handed out',
    ({ handOff }) => handOff.counts.handedOut.records,
  ),
  counter(
    'baton_settlements_total{outcome}',
    'settlements accepted, including repeated ones: done, failed or released',
    ({ handOff }) => by(handOff.counts.settlements),
  ),
  counter('baton_renewed_leases_total', 'leases renewed', ({ handOff }) => handOff.counts.renewed),
  counter(
    'baton_refused_leases_total{verb,code}',
    'leases that were refused by a settle or renew, by error code',
    ({ handOff }) =>
      Object.entries(handOff.counts.refused).flatMap(([verb, codes]) =>
        Object.entries(codes).map(([code, count]): Sample => [[verb, code], count]),
      ),
  ),
  counter(
    'baton_expired_leases_total{parked}',
    'leases that expired; parked is yes if the partition had no attempts left',
    ({ handOff: { storeCounts } }) => [
      [['no'], storeCounts.expired - storeCounts.expiredForGood],
      [['yes'], storeCounts.expiredForGood],
    ],
  ),
  counter(
    'baton_undone_leases_total',
    'leases undone because the client disconnected before the response',
    ({ handOff }) => handOff.storeCounts.undone,
  ),
]

/** Webhook deliveries of this node. Only the leader delivers. */
const webhookMetrics: readonly Metric[] = [
  counter(
    'baton_webhook_attempts_total{outcome}',
    'events sent to receivers: delivered, to be retried, or failed after the last attempt',
    ({ webhooks: { deliverer } }) => by({ ...deliverer.counts }),
  ),
  gauge(
    'baton_webhook_targets_broken',
    'receivers that failed too often and are tried only occasionally',
    ({ webhooks: { deliverer } }) => deliverer.broken,
  ),
]

/** The verbs of a store whose label is not their name. */
const verbLabels: Partial<Record<StoreVerb, string>> = {
  runBatch: 'hand-off',
  revokeLeases: 'release-instance',
  revokeLease: 'release-partition',
}

const labelOf = (verb: StoreVerb): string =>
  verbLabels[verb] ?? verb.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

const storeMetrics: readonly Metric[] = [
  histogram(
    'baton_commit_orders',
    'call-backs, pulls, renewals and settles that shared one commit',
    ({ handOff }) => [[[], handOff.storeCounts.commitRequests]],
  ),
  histogram(
    'baton_store_duration_seconds{verb}',
    'duration of store operations; hand-off is the commit of call-backs, pulls, renewals and settles',
    function* ({ handOff }) {
      for (const [verb, { seconds }] of handOff.storeCounts.verbs) yield [[labelOf(verb)], seconds]
    },
  ),
  counter('baton_store_failures_total{verb}', 'store operations that failed', function* ({ handOff }) {
    for (const [verb, { failures }] of handOff.storeCounts.verbs) yield [[labelOf(verb)], failures]
  }),
  gauge('baton_store_up', '1 if the store recently committed a write', ({ store }) =>
    Number(store.canCommit),
  ),
]

/** The open work in the memory of the leader. Other nodes have none. */
const openWorkMetrics: readonly Metric[] = [
  gauge(
    'baton_lanes',
    'lanes with unfinished work; each further table of a lane counts as a tenth. 0 on nodes that do not lead',
    ({ handOff }) => handOff.openWork?.lanes ?? [],
  ),
  gauge(
    'baton_leases',
    'leases. 0 on nodes that do not lead',
    ({ handOff }) => handOff.openWork?.leases ?? [],
  ),
  gauge(
    'baton_open_work_limit{of}',
    'the limits of both, --max-lanes and --max-leases',
    ({ handOff: { openWork } }) => (openWork === undefined ? [] : by({ ...openWork.limits })),
  ),
]

const unfinished = (counts: ViewedCounts | undefined) =>
  counts === undefined ? [] : by(Object.fromEntries(unfinishedStates.map((state) => [state, counts[state]])))

/** The backlog in the shared store: the same values on every node. */
const backlogMetrics: readonly Metric[] = [
  gauge('baton_tasks{state}', 'tasks that are open, paused or stalled', ({ store: { backlog } }) =>
    by(backlog?.tasks ?? {}),
  ),
  gauge(
    'baton_partitions{state}',
    'partitions of these tasks that are ready, held, leased, delayed or parked',
    ({ store: { backlog } }) => unfinished(backlog?.partitions),
  ),
  gauge('baton_records{state}', 'records of these partitions', ({ store: { backlog } }) =>
    unfinished(backlog?.records),
  ),
  gauge(
    'baton_backlog_complete',
    `0 if there are more such tasks than the ${MOST_TASKS} that are added up`,
    ({ store: { backlog } }) => (backlog === null ? [] : Number(backlog.isComplete)),
  ),
]

/** Null while the store cannot be read. */
const scaleIn = ({ store: { backlog, fleet }, scaleTargetSeconds }: MetricSources) =>
  backlog === null || fleet === null ? null : scaleOf(backlog, fleet, scaleTargetSeconds, false)

/** The values of `/scale` for all tasks. Tasks and tables are no labels: their number has no limit. */
const scaleMetrics: readonly Metric[] = [
  gauge(
    'baton_desired_workers',
    'number of workers that would finish the backlog within --scale-target-seconds; at least 1 if there is a backlog',
    (from) => scaleIn(from)?.desiredWorkers ?? [],
  ),
  gauge(
    'baton_backlog_work_seconds',
    'lease time that the backlog needs at the measured pace; absent without a pace',
    (from) => scaleIn(from)?.workSeconds ?? [],
  ),
  gauge(
    'baton_workers{state}',
    'workers that are busy, idle or lost; a lease of a lost worker expired while it was silent',
    (from) => {
      const scale = scaleIn(from)
      if (scale === null) return []
      const { busy, idle, lost } = scale.workers
      return by({ busy, idle, lost })
    },
  ),
]

/** Of this node, since its start. */
export const metricsOfNode: readonly Metric[] = [
  ...requestMetrics,
  ...limitMetrics,
  ...handOffMetrics,
  ...storeMetrics,
  ...openWorkMetrics,
  ...nodeMetrics,
  ...webhookMetrics,
]

/** Of the whole store: the same from each node. */
export const metricsOfStore: readonly Metric[] = [...backlogMetrics, ...scaleMetrics]

export const metrics: readonly Metric[] = [...metricsOfNode, ...metricsOfStore]
