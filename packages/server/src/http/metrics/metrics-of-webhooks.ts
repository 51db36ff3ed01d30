import { by, counter, gauge, type Metric } from './metric.ts'

/** What this node has posted. Only the node that leads does. */
export const webhookMetrics: readonly Metric[] = [
  counter(
    'baton_webhook_attempts_total',
    ['outcome'],
    'events posted to receivers: delivered, to be retried, or given up',
    ({ webhooks: { deliverer } }) => by({ ...deliverer.counts }),
  ),
  gauge(
    'baton_webhook_targets_broken',
    [],
    'receivers that failed so often that they are only tried now and then',
    ({ webhooks: { deliverer } }) => deliverer.broken,
  ),
]
