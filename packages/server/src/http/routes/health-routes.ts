import { type Totals, totalsSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { RequestProblem } from '../answers/problems.ts'
import { answers } from '../api-document/documented.ts'
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
