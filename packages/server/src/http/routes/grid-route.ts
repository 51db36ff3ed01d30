import { type Grid, gridSchema, MAX_GRID_CELLS } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { requireOwn, requireTaskLimit } from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import { answers } from '../api-document/route-schemas.ts'
import {
  numberOf,
  type Query,
  type TaskParams,
  taskIdOf,
  taskParams,
  unknownTask,
} from '../requests/parameters.ts'
import type { Service } from '../service.ts'

/** The states of a level's partitions at a glance, at a cost that does not grow with the level. */
export function gridRoute(app: FastifyInstance, { handOff, tokens }: Service): void {
  app.route<{ Params: TaskParams; Querystring: Query }>({
    method: 'GET',
    url: '/tasks/:taskId/grid',
    config: { access: 'task' },
    schema: {
      operationId: 'viewGrid',
      summary: 'The states of the partitions of one level, by ranges of indexes',
      tags: ['tasks'],
      params: taskParams,
      querystring: Type.Object({
        level: Type.Optional(Type.Integer({ minimum: 0, description: 'By default the lowest level' })),
        cells: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: MAX_GRID_CELLS,
            default: MAX_GRID_CELLS,
            description: 'The most cells; a level with more partitions has several in each',
          }),
        ),
      }),
      response: answers(gridSchema, 'The grid'),
    },
    handler: async ({ params, query, raw }, reply) => {
      const taskId = taskIdOf(params)
      const token = tokens.of(raw.headers)
      requireTaskLimit(token, taskId)
      const cells = numberOf(query, 'cells') ?? MAX_GRID_CELLS
      if (cells < 1 || cells > MAX_GRID_CELLS)
        throw new RequestProblem(
          'parameter_invalid',
          `the query parameter cells must be an integer from 1 to ${MAX_GRID_CELLS}`,
        )
      const grid = await handOff.views.grid({ taskId, level: numberOf(query, 'level'), cells })
      if (grid === null) throw unknownTask(taskId)
      requireOwn(token, grid.task)
      const { level, partitions, sampled, cells: shown } = grid
      const answer: Grid = { taskId, level, partitions, sampled, cells: [...shown] }
      return reply.send(answer)
    },
  })
}
