import { gridSchema, MAX_GRID_CELLS } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import { requireView } from '../admission/token-limits.ts'
import { integer, level } from '../requests/parameters.ts'
import type { RouteContext } from '../route-context.ts'
import { operation, unknownTask } from './operation.ts'

/** The states of a level's partitions at a glance, at a cost that does not grow with the level. */
export function gridRoute(app: FastifyInstance, context: RouteContext): void {
  operation(app, context, 'GET', '/tasks/:taskId/grid', {
    id: 'viewGrid',
    summary: 'The states of the partitions of one level, by ranges of indexes',
    tag: 'tasks',
    access: 'task',
    query: {
      level: level({ description: 'By default the lowest level' }),
      cells: integer({
        minimum: 1,
        maximum: MAX_GRID_CELLS,
        default: MAX_GRID_CELLS,
        description: 'The most cells; a level with more partitions has several in each',
      }),
    },
    answers: [gridSchema, 'The grid'],
    answer: async ({ path: { taskId }, query, token }) => {
      const grid = await context.handOff.views.grid({ taskId, ...query })
      if (grid === null) throw unknownTask(taskId)
      const { task, ...shown } = grid
      requireView(token, task)
      return { taskId, ...shown }
    },
  })
}
