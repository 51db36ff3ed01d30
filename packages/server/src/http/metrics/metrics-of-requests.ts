import { counter, gauge, histogram, type Metric } from './metric.ts'

/** What clients ask of this node. */
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
