import { MOST_TASKS } from '../../handoff/counts/store-readings.ts'
import { unfinishedStates } from '../../handoff/rules/life-cycle.ts'
import type { ViewedCounts } from '../../handoff/views/view-state.ts'
import { by, counter, gauge, histogram, type Metric } from './metric.ts'

/** Webhook deliveries of this node. Only the leader delivers. */
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

const kebab = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** Store operations of this node. */
export const storeMetrics: readonly Metric[] = [
  histogram(
    'baton_commit_orders',
    [],
    'call-backs, pulls, renewals and settles that shared one commit',
    ({ handOff }) => [[[], handOff.storeCounts.commitOrders]],
  ),
  histogram(
    'baton_store_duration_seconds',
    ['verb'],
    'time that the store took for what it did; hand-off is the commit of call-backs, pulls, renewals and settles',
    function* ({ handOff }) {
      for (const [verb, { seconds }] of handOff.storeCounts.verbs) yield [[kebab(verb)], seconds]
    },
  ),
  counter(
    'baton_store_failures_total',
    ['verb'],
    'what the store was asked and could not do',
    function* ({ handOff }) {
      for (const [verb, { failures }] of handOff.storeCounts.verbs) yield [[kebab(verb)], failures]
    },
  ),
  gauge('baton_store_up', [], '1 when the store has just committed a write', ({ store }) =>
    Number(store.canCommit),
  ),
]

const unfinished = (counts: ViewedCounts | undefined) =>
  counts === undefined ? [] : by(Object.fromEntries(unfinishedStates.map((state) => [state, counts[state]])))

/** The backlog in the shared store: the same values on every node. */
export const backlogMetrics: readonly Metric[] = [
  gauge('baton_tasks', ['state'], 'tasks that are open, paused or stalled', ({ store: { backlog } }) =>
    by(backlog?.tasks ?? {}),
  ),
  gauge(
    'baton_partitions',
    ['state'],
    'partitions of these tasks that are ready, held, leased, delayed or parked',
    ({ store: { backlog } }) => unfinished(backlog?.partitions),
  ),
  gauge('baton_records', ['state'], 'records of these partitions', ({ store: { backlog } }) =>
    unfinished(backlog?.records),
  ),
  gauge(
    'baton_backlog_complete',
    [],
    `0 when there are more such tasks than the ${MOST_TASKS} that are added up`,
    ({ store: { backlog } }) => (backlog === null ? [] : Number(backlog.isComplete)),
  ),
]
