import { by, counter, gauge, type Metric } from './metric.ts'

/** How much callers ask for at once, and how often they asked for more than they may. */
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
