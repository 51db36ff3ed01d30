import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { Distribution } from '../../handoff/counts/counts.ts'
import { problemAnswers } from '../api-document/route-schemas.ts'
import type { AdmissionBudget } from '../budget/budget.ts'
import type { Service } from '../service.ts'
import type { RequestCounts } from './answered-requests.ts'
import { METRICS_TYPE, metricText } from './metric.ts'
import { metrics } from './metrics.ts'

const SAMPLE_MILLIS = 100
/** Timers have a resolution of one millisecond, and a store on the event loop blocks it for a few. */
const DELAY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** Measures the event loop delay ten times a second. Node provides all other process metrics. */
export class ProcessHealth {
  /** How late a timer fired, which is how long a request that arrived at that time had to wait. */
  readonly eventLoopDelay = new Distribution(DELAY_SECONDS)
  #dueAt = performance.now() + SAMPLE_MILLIS
  readonly #timer = setInterval(() => this.#sample(), SAMPLE_MILLIS).unref()
  readonly #onSample: (lateMillis: number) => void

  constructor(onSample: (lateMillis: number) => void = () => {}) {
    this.#onSample = onSample
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #sample(): void {
    const now = performance.now()
    const lateMillis = Math.max(0, now - this.#dueAt)
    this.eventLoopDelay.add(lateMillis / 1000)
    this.#onSample(lateMillis)
    this.#dueAt = now + SAMPLE_MILLIS
  }
}

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
