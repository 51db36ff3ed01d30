import { type StateCounts, type Totals, totalsSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import type { ShownCounts } from '../../handoff/shown/shown-state.ts'
import { StoreUnavailable } from '../../handoff/store.ts'
import { answers } from '../api-document/documented.ts'
import type { Service } from '../service.ts'

/** The numbers behind the metrics of the backlog, from the same readings: whoever asks, and however often, shares them. */
export function totalsRoute(app: FastifyInstance, { handOff }: Service): void {
  app.route({
    method: 'GET',
    url: '/totals',
    config: { access: 'view' },
    schema: {
      operationId: 'viewTotals',
      summary: 'All unfinished tasks together: how many there are, and their partitions and records by state',
      tags: ['tasks'],
      response: answers(totalsSchema, 'The sums'),
    },
    handler: async (_request, reply) => {
      const { backlog } = await handOff.storeReadings.read()
      if (backlog === null) {
        throw new StoreUnavailable(
          'store_unavailable',
          'the tasks could not be added up: the store does not answer',
        )
      }
      const totals: Totals = {
        tasks: { ...backlog.tasks, withParked: backlog.tasksWithParked },
        partitions: countsOf(backlog.partitions),
        records: countsOf(backlog.records),
        complete: backlog.isComplete,
      }
      return reply.header('cache-control', 'no-store').send(totals)
    },
  })
}

/** A task is bounded by what a number can tell exactly; many of them together are not. */
function countsOf(sums: ShownCounts): StateCounts {
  const exact = Object.entries(sums).map(([state, sum]) => [state, Math.min(sum, Number.MAX_SAFE_INTEGER)])
  return Object.fromEntries(exact) as StateCounts
}
