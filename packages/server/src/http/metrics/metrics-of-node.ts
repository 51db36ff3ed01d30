import { version } from '../../version.ts'
import { by, counter, gauge, histogram, type Metric } from './metric.ts'

/** Concurrent use of this node, and how often bounds were reached. */
export const boundMetrics: readonly Metric[] = [
  gauge('baton_connections', [], 'connections that are open', ({ budget }) => budget.connections),
  gauge(
    'baton_received_bytes',
    [],
    'bodies that were received and are not answered yet',
    ({ budget }) => budget.received.held,
  ),
  gauge(
    'baton_unsent_bytes',
    [],
    'answers that clients have not taken yet, looked at once a second',
    ({ budget }) => budget.unsentBytes,
  ),
  counter('baton_bounds_met_total', ['bound'], 'how often a bound on callers was met', ({ budget }) =>
    by(budget.met.counts),
  ),
]

/** Requests to this node. */
export const requestMetrics: readonly Metric[] = [
  counter(
    'baton_requests_total',
    ['method', 'route', 'status'],
    'requests answered; page stands for the page and its files, none for what has no route',
    function* ({ requests }) {
      for (const { method, route, statuses } of requests.routes())
        for (const [status, count] of statuses) yield [[method, route, String(status)], count]
    },
  ),
  histogram(
    'baton_request_duration_seconds',
    ['method', 'route'],
    'time from a request to its answer; pulls that waited for work are left out',
    function* ({ requests }) {
      for (const { method, route, statuses, seconds } of requests.routes())
        if (statuses.size > 0) yield [[method, route], seconds]
    },
  ),
  gauge('baton_waiting_pulls', [], 'pulls that wait for work', ({ handOff }) => handOff.waitingPulls),
  gauge('baton_event_streams', [], 'event streams that are open', ({ handOff }) => handOff.events.followers),
]

/** The state of this node and its process. */
export const nodeMetrics: readonly Metric[] = [
  gauge('baton_ready', [], '1 when the node can hand off: what /readyz would say', ({ handOff, store }) =>
    Number(store.canCommit && !handOff.isDraining),
  ),
  gauge('baton_leader', [], '1 when the node decides who gets what; one that is alone does', ({ handOff }) =>
    Number(handOff.leads),
  ),
  gauge('baton_draining', [], '1 when the node is shutting down', ({ handOff }) =>
    Number(handOff.isDraining),
  ),
  histogram(
    'baton_event_loop_delay_seconds',
    [],
    'how late the event loop was, looked at ten times a second',
    ({ health }) => [[[], health.eventLoopDelay]],
  ),
  counter(
    'baton_event_loop_busy_seconds_total',
    [],
    'time that the event loop was busy; at a rate of 1 the node is at its limit',
    () => performance.eventLoopUtilization().active / 1000,
  ),
  counter(
    'baton_process_cpu_seconds_total',
    ['mode'],
    'processor time of the process, user or system',
    () => {
      const { user, system } = process.cpuUsage()
      return by({ user: user / 1e6, system: system / 1e6 })
    },
  ),
  gauge('baton_process_resident_memory_bytes', [], 'memory that the process has', () =>
    process.memoryUsage.rss(),
  ),
  gauge(
    'baton_process_heap_used_bytes',
    [],
    'memory that its objects take',
    () => process.memoryUsage().heapUsed,
  ),
  gauge(
    'baton_process_timers',
    [],
    'timers that run: of waiting pulls, idle connections and the service itself',
    () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length,
  ),
  gauge(
    'baton_process_start_time_seconds',
    [],
    'when the process started, since 1970',
    () => performance.timeOrigin / 1000,
  ),
  gauge('baton_build_info', ['version', 'node'], '1, with the versions of Baton and of Node', () => [
    [[version, process.versions.node], 1],
  ]),
]
