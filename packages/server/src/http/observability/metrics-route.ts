import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { problemAnswers } from '../api-document/documented.ts'
import type { AdmissionBudget } from '../budget/budget.ts'
import type { Service } from '../service.ts'
import type { RequestCounts } from './answered-requests.ts'
import { METRICS_TYPE, metricText, ProcessHealth } from './metric.ts'
import { metrics } from './metrics.ts'

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
    config: { access: 'metrics' },
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
