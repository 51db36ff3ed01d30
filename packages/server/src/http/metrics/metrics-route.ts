import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { problemAnswers } from '../api-document/documented.ts'
import type { AdmissionBudget } from '../budget/budget.ts'
import type { RequestCounts } from '../requests/request-counts.ts'
import type { Service } from '../service.ts'
import { METRICS_TYPE, type Metric, metricText, ProcessHealth } from './metric.ts'
import { handOffMetrics } from './metrics-of-hand-off.ts'
import { boundMetrics, nodeMetrics, requestMetrics } from './metrics-of-node.ts'
import { scaleMetrics } from './metrics-of-scale.ts'
import { backlogMetrics, storeMetrics, webhookMetrics } from './metrics-of-store.ts'

/** All metrics. A test compares the table in docs/operations.md with this list. */
export const metrics: readonly Metric[] = [
  ...requestMetrics,
  ...boundMetrics,
  ...handOffMetrics,
  ...storeMetrics,
  ...nodeMetrics,
  ...webhookMetrics,
  ...backlogMetrics,
  ...scaleMetrics,
]

/** Metrics for Prometheus. Also answered while the store is unavailable, when they are needed most. */
export function metricsRoute(
  app: FastifyInstance,
  { handOff, webhooks, scaleTargetSeconds }: Service,
  requests: RequestCounts,
  budget: AdmissionBudget,
): void {
  const health = new ProcessHealth((lateMillis) => budget.overload.note(lateMillis))
  app.addHook('onClose', async () => health.stop())
  app.route({
    method: 'GET',
    url: '/metrics',
    config: { access: 'overview', urgency: 'urgent' },
    schema: {
      operationId: 'metrics',
      summary: 'What this node has done and how it is, and how much work the store holds, as metrics',
      tags: ['health'],
      response: {
        200: {
          description: 'In the text format of Prometheus',
          content: { 'text/plain': { schema: Type.String() } },
        },
        ...problemAnswers,
      },
    },
    handler: async (_request, reply) => {
      const store = await handOff.storeReadings.read()
      const from = { handOff, requests, health, webhooks, budget, store, scaleTargetSeconds }
      const text = metrics.map((metric) => metricText(metric, metric.samples(from))).join('')
      return reply.header('content-type', METRICS_TYPE).send(text)
    },
  })
}
