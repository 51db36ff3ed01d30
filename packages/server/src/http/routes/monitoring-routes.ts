import { MAX_SCALE_TARGET_SECONDS, type Scale, scaleSchema, type Totals, totalsSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { Distribution } from '../../handoff/counts/counts.ts'
import { scaleOf } from '../../handoff/counts/scale.ts'
import { requireTaskLimit } from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import { answers, chosenParameters } from '../api-document/route-schemas.ts'
import type { AdmissionBudget } from '../budget/budget.ts'
import type { RequestCounts } from '../observability/answered-requests.ts'
import { METRICS_TYPE, metricText } from '../observability/metric.ts'
import { metrics } from '../observability/metrics.ts'
import { chosenNames, once, type Query } from '../requests/parameters.ts'
import type { Service } from '../service.ts'

/**
 * The values of the backlog metrics. Taken from the same cached readings, so frequent requests do not load
 * the store.
 */
export function totalsRoute(app: FastifyInstance, { handOff }: Service): void {
  app.route({
    method: 'GET',
    url: '/totals',
    config: { access: 'overview' },
    schema: {
      operationId: 'viewTotals',
      summary: 'All unfinished tasks together: their number, and their partitions and records by state',
      tags: ['tasks'],
      response: answers(totalsSchema, 'The sums'),
    },
    handler: async (_request, reply) => {
      const { tasks, tasksWithParked, partitions, records, isComplete } =
        await handOff.storeReadings.backlog()
      const totals: Totals = {
        tasks: { ...tasks, withParked: tasksWithParked },
        partitions,
        records,
        complete: isComplete,
      }
      return reply.send(totals)
    },
  })
}

/**
 * Probes for the process supervisor. They need no token, because they reveal no more than a closed port
 * would.
 */
export function healthRoutes(app: FastifyInstance, { handOff }: Service): void {
  const word = <Word extends string>(status: Word) =>
    Type.Object({ status: Type.Unsafe<Word>({ type: 'string', enum: [status] }) })

  app.route({
    method: 'GET',
    url: '/livez',
    config: { access: 'probe' },
    schema: {
      operationId: 'livez',
      summary: 'Whether the process is alive',
      tags: ['health'],
      response: answers(word('alive'), 'It is'),
    },
    handler: (_request, reply) => reply.send({ status: 'alive' }),
  })

  app.route({
    method: 'GET',
    url: '/readyz',
    config: { access: 'probe' },
    schema: {
      operationId: 'readyz',
      summary: 'Whether the node can hand off: it is not shutting down and its store can commit',
      tags: ['health'],
      response: answers(word('ready'), 'It can'),
    },
    handler: async (_request, reply) => {
      if (handOff.isDraining) {
        throw new RequestProblem(
          'shutting_down',
          'this node finishes the requests in progress and accepts no new ones',
        )
      }
      await handOff.probe()
      return reply.send({ status: 'ready' })
    },
  })
}

/** The backlog and the number of workers it needs, for autoscalers and operators. */
export function scaleRoute(app: FastifyInstance, { handOff, scaleTargetSeconds, tokens }: Service): void {
  const parameters = {
    ...chosenParameters('Only the backlog of'),
    target: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_SCALE_TARGET_SECONDS,
        default: scaleTargetSeconds,
        description:
          'Number of seconds within which the backlog should be finished; by default the setting of the service',
        examples: [600],
      }),
    ),
  }

  app.route<{ Querystring: Query }>({
    method: 'GET',
    url: '/scale',
    config: { access: 'view' },
    schema: {
      operationId: 'viewScale',
      summary:
        'The backlog, the workers, and the number of workers that would finish it within a target time',
      tags: ['tasks'],
      querystring: Type.Object(parameters),
      response: answers(scaleSchema, 'The backlog and the number of workers that it needs'),
    },
    handler: async ({ query, raw: { headers } }, reply) => {
      const target = targetOf(query) ?? scaleTargetSeconds
      const chosen = (kind: 'table' | 'task') => chosenNames(kind, [query[kind] ?? []].flat())
      const token = tokens.of(headers)
      const filter = { tables: chosen('table'), tasks: chosen('task'), prefixes: token?.tasks ?? null }
      for (const taskId of filter.tasks ?? []) requireTaskLimit(token, taskId)
      const isPart = Object.values(filter).some((names) => names !== null)
      const { backlog, fleet } = await handOff.storeReadings.workload(isPart ? filter : null)
      const scale: Scale = scaleOf(backlog, fleet, target, isPart)
      return reply.send(scale)
    },
  })
}

function targetOf(query: Query): number | null {
  const text = once(query, 'target')
  if (text === undefined) return null
  const target = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (target >= 1 && target <= MAX_SCALE_TARGET_SECONDS) return target
  throw new RequestProblem(
    'parameter_invalid',
    `the query parameter target must be an integer from 1 to ${MAX_SCALE_TARGET_SECONDS}, in seconds`,
  )
}

const SAMPLE_MILLIS = 100
/** Timers have a resolution of one millisecond, and a store on the event loop blocks it for a few. */
const DELAY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** Measures the event loop delay ten times a second. Node provides all other process metrics. */
class ProcessHealth {
  /** How late a timer fired, which is how long a request that arrived at that time had to wait. */
  readonly eventLoopDelay = new Distribution(DELAY_SECONDS)
  #dueAt = performance.now() + SAMPLE_MILLIS
  readonly #timer = setInterval(() => this.#sample(), SAMPLE_MILLIS).unref()
  readonly #onSample: (lateMillis: number) => void

  constructor(onSample: (lateMillis: number) => void) {
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

const metricsText = Type.String({
  examples: ['# TYPE baton_partitions gauge\nbaton_partitions{state="ready"} 11\n'],
})

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
      summary: 'Metrics of this node and of the tasks in the store',
      tags: ['health'],
      response: answers(metricsText, 'The metrics in the text format of Prometheus', 'text/plain'),
    },
    handler: async (_request, reply) => {
      const store = await handOff.storeReadings.read()
      const from = { handOff, requests, health, webhooks, budget, store, scaleTargetSeconds }
      const text = metrics.map((metric) => metricText(metric, metric.samples(from))).join('')
      return reply.header('content-type', METRICS_TYPE).send(text)
    },
  })
}
