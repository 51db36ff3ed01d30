import { MAX_SCALE_TARGET_SECONDS, scaleSchema, totalsSchema, whoamiSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { Histogram } from '../../handoff/counts/counts.ts'
import { scaleOf } from '../../handoff/counts/scale.ts'
import { requireTaskLimit } from '../admission/token-limits.ts'
import { roles } from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import { answers, chosenParameters } from '../api-document/route-schemas.ts'
import type { ClientLimiter } from '../limits/limiter.ts'
import type { RequestCounts } from '../observability/answered-requests.ts'
import { METRICS_TYPE, metricText } from '../observability/metric.ts'
import { metrics } from '../observability/metrics.ts'
import { chosenNames, integer, type Parameter } from '../requests/parameters.ts'
import type { RouteContext } from '../route-context.ts'
import { operation } from './operation.ts'

const statusOf = <Word extends string>(status: Word) =>
  Type.Object({ status: Type.Unsafe<Word>({ type: 'string', enum: [status] }) })

/** A table or a task, repeated for several. */
const chosen = (kind: 'table' | 'task'): Parameter<readonly string[] | null> => ({
  schema: chosenParameters('Only the backlog of')[kind],
  read: (given = []) => chosenNames(kind, [given].flat()),
})

const SAMPLE_MILLIS = 100
/** Timers have a resolution of one millisecond, and a store on the event loop blocks it for a few. */
const DELAY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** Measures ten times a second how late a timer fires: as long had a request to wait that arrived then. */
function sampleEventLoop(app: FastifyInstance, { overload }: ClientLimiter): Histogram {
  const delay = new Histogram(DELAY_SECONDS)
  let dueAt = performance.now() + SAMPLE_MILLIS
  const sample = () => {
    const now = performance.now()
    const lateMillis = Math.max(0, now - dueAt)
    delay.add(lateMillis / 1000)
    overload.note(lateMillis)
    dueAt = now + SAMPLE_MILLIS
  }
  const timer = setInterval(sample, SAMPLE_MILLIS).unref()
  app.addHook('onClose', async () => clearInterval(timer))
  return delay
}

const metricsText = Type.String({
  examples: ['# TYPE baton_partitions gauge\nbaton_partitions{state="ready"} 11\n'],
})

export function monitoringRoutes(
  app: FastifyInstance,
  context: RouteContext,
  requests: RequestCounts,
  limiter: ClientLimiter,
): void {
  const { handOff, webhooks, scaleTargetSeconds } = context
  // Probes need no token, because they reveal no more than a closed port would.
  operation(app, context, 'GET', '/livez', {
    id: 'livez',
    summary: 'Whether the process is alive',
    tag: 'health',
    access: 'probe',
    answers: [statusOf('alive'), 'It is'],
    answer: () => ({ status: 'alive' as const }),
  })

  operation(app, context, 'GET', '/readyz', {
    id: 'readyz',
    summary: 'Whether the node can hand off: it is not shutting down and its store can commit',
    tag: 'health',
    access: 'probe',
    answers: [statusOf('ready'), 'It can'],
    answer: async () => {
      if (handOff.isDraining)
        throw new RequestProblem('shutting_down', 'this node is shutting down and hands out nothing more')
      await handOff.probe()
      return { status: 'ready' as const }
    },
  })

  // From the cached readings of the metrics, so frequent requests do not load the store.
  operation(app, context, 'GET', '/totals', {
    id: 'viewTotals',
    summary: 'All unfinished tasks together: their number, and their partitions and records by state',
    tag: 'tasks',
    access: 'overview',
    answers: [totalsSchema, 'The sums'],
    answer: async () => {
      const { tasks, tasksWithParked, partitions, records, isComplete } =
        await handOff.storeReadings.backlog()
      return {
        tasks: { ...tasks, withParked: tasksWithParked },
        partitions,
        records,
        complete: isComplete,
      }
    },
  })

  // For autoscalers and operators.
  operation(app, context, 'GET', '/scale', {
    id: 'viewScale',
    summary: 'The backlog, the workers, and the number of workers that would finish it within a target time',
    tag: 'tasks',
    access: 'view',
    query: {
      table: chosen('table'),
      task: chosen('task'),
      target: integer({
        minimum: 1,
        maximum: MAX_SCALE_TARGET_SECONDS,
        default: scaleTargetSeconds,
        description:
          'Number of seconds within which the backlog should be finished; by default the setting of the service',
        examples: [600],
      }),
    },
    answers: [scaleSchema, 'The backlog and the number of workers that it needs'],
    answer: async ({ query: { table, task, target }, token }) => {
      const choice = { tables: table, tasks: task, prefixes: token?.tasks ?? null }
      for (const taskId of choice.tasks ?? []) requireTaskLimit(token, taskId)
      const isPart = Object.values(choice).some((names) => names !== null)
      const { backlog, fleet } = await handOff.storeReadings.workload(isPart ? choice : null)
      return scaleOf(backlog, fleet, target, isPart)
    },
  })

  operation(app, context, 'GET', '/whoami', {
    id: 'whoami',
    summary: 'The name and the roles of the sender',
    tag: 'health',
    access: 'anyone',
    answers: [whoamiSchema, 'The sender'],
    answer: ({ token }) => ({
      name: token?.name ?? null,
      roles: roles.filter((role) => token === null || token.roles.has(role)),
      tasks: token?.tasks == null ? null : [...token.tasks],
    }),
  })

  // Also answered while the store is unavailable, when metrics are needed most.
  const eventLoopDelay = sampleEventLoop(app, limiter)
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
      const from = { handOff, requests, eventLoopDelay, webhooks, limiter, store, scaleTargetSeconds }
      const text = metrics.map((metric) => metricText(metric, metric.samples(from))).join('')
      return reply.header('content-type', METRICS_TYPE).send(text)
    },
  })
}
