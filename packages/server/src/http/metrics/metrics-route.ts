import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { AdmissionBudget } from '../admission/budget.ts'
import { problemAnswers } from '../api-document/documented.ts'
import type { RequestCounts } from '../requests/request-counts.ts'
import type { Service } from '../service.ts'
import { METRICS_TYPE, metricText } from './metric-text.ts'
import { metrics } from './metrics.ts'
import { ProcessHealth } from './process-health.ts'

/** For Prometheus and its kin. Answered whatever became of the store: then above all somebody wants to know. */
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
