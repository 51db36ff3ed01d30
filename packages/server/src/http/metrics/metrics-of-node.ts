import { version } from '../../version.ts'
import { by, counter, gauge, histogram, type Metric } from './metric.ts'

/** How this node is. */
export const nodeMetrics: readonly Metric[] = [
  gauge('baton_ready', [], '1 when the node can hand off: what /readyz would say', ({ handOff, store }) =>
    Number(store.canCommit && !handOff.isDraining),
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
