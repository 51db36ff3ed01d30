import {
  didYouMean,
  MAX_SCALE_TARGET_SECONDS,
  type Scale,
  scaleSchema,
  type Totals,
  totalsSchema,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { scaleOf } from '../../handoff/counts/scale.ts'
import { RequestProblem } from '../answers/problems.ts'
import { answers, chosenParameters } from '../api-document/route-schemas.ts'
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
      summary: 'All unfinished tasks together: how many there are, and their partitions and records by state',
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
        throw new RequestProblem('shutting_down', 'this node finishes what it has and takes nothing new')
      }
      await handOff.probe()
      return reply.send({ status: 'ready' })
    },
  })
}

/** The backlog and the number of workers it needs, for autoscalers and operators. */
export function scaleRoute(app: FastifyInstance, { handOff, scaleTargetSeconds }: Service): void {
  const parameters = {
    ...chosenParameters('Only the backlog of'),
    target: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_SCALE_TARGET_SECONDS,
        default: scaleTargetSeconds,
        description: 'Within how many seconds the backlog is to be finished; otherwise as the service is set',
        examples: [600],
      }),
    ),
  }
  const known = Object.keys(parameters)

  app.route<{ Querystring: Query }>({
    method: 'GET',
    url: '/scale',
    config: { access: 'overview' },
    schema: {
      operationId: 'viewScale',
      summary: 'The backlog, the workers, and how many of them would finish it within a time',
      tags: ['tasks'],
      querystring: Type.Object(parameters),
      response: answers(scaleSchema, 'What there is to do, and the number of workers for it'),
    },
    handler: async ({ query }, reply) => {
      requireKnown(query, known)
      const target = targetOf(query) ?? scaleTargetSeconds
      const chosen = (kind: 'table' | 'task') => chosenNames(kind, [query[kind] ?? []].flat())
      const choice = { tables: chosen('table'), tasks: chosen('task') }
      const isPart = choice.tables !== null || choice.tasks !== null
      const { backlog, fleet } = await handOff.storeReadings.workload(isPart ? choice : null)
      const scale: Scale = scaleOf(backlog, fleet, target, isPart)
      return reply.send(scale)
    },
  })
}

/** Refuses unknown parameters. Ignoring a misspelt filter would scale workers for the wrong backlog. */
function requireKnown(query: Query, known: readonly string[]): void {
  const name = Object.keys(query).find((one) => !known.includes(one))
  if (name === undefined) return
  const meant = didYouMean(name, known)
  const advice = meant === undefined ? `there are ${known.join(', ')}` : `did you mean ${meant}?`
  throw new RequestProblem(
    'parameter_invalid',
    `${JSON.stringify(name)} is not a query parameter here; ${advice}`,
  )
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
