import { type Totals, totalsSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import { answers } from '../api-document/documented.ts'
import type { Service } from '../service.ts'

/** The numbers behind the metrics of the backlog, from the same readings: whoever asks, and however often, shares them. */
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
