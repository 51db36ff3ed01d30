import {
  explainPartitionName,
  gridSchema,
  instanceIdKeywords,
  MAX_GRID_CELLS,
  MAX_PARTITION_NAME_LENGTH,
  parsePartitionName,
  partitionListSchema,
  partitionOrders,
  partitionStates,
  taskListSchema,
  taskStates,
  taskViewSchema,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { PartitionPart, PartitionPosition } from '../../handoff/views/queries.ts'
import { isWithinLimit, requireView } from '../admission/token-limits.ts'
import { logUrlsAdder, presentPartition } from '../answers/partition-view.ts'
import { presentTask, summariseTask } from '../answers/task-view.ts'
import { tableFieldRenamer } from '../answers/wire-values.ts'
import {
  flag,
  integer,
  invalidParameter,
  level,
  nextOf,
  pageOf,
  parameter,
  safeInteger,
  search,
  text,
  word,
} from '../requests/parameters.ts'
import type { RouteContext } from '../route-context.ts'
import { operation, unknownTask } from './operation.ts'

/** Far longer than any key. */
const MAX_REASON_KEY_LENGTH = 100

const indexes = parameter(
  Type.String({
    pattern: '^[0-9]+-[0-9]+$',
    description: 'Only this range of indexes of the level, such as `100-199`',
    examples: ['100-199'],
  }),
  null,
  (given, refuse) => {
    const [first = 0, last = 0] = /^\d{1,16}-\d{1,16}$/.test(given) ? given.split('-').map(Number) : [1, 0]
    return first <= last && Number.isSafeInteger(last)
      ? { first, last }
      : refuse('must be a range such as 100-199')
  },
)

export function taskRoutes(app: FastifyInstance, context: RouteContext): void {
  const { handOff, tableField, logUrl } = context
  const withTableField = tableFieldRenamer(tableField)
  const withLogUrls = logUrlsAdder(logUrl)

  operation(app, context, 'GET', '/tasks', {
    id: 'listTasks',
    summary: 'All tasks, newest first',
    tag: 'tasks',
    access: 'view',
    query: {
      state: word(taskStates),
      parked: flag('Only tasks that have parked partitions, in any state'),
      search: search('Only tasks whose id contains this text'),
      ...pageOf(safeInteger),
    },
    answers: [taskListSchema, 'One page of tasks. A short or empty page is not necessarily the last one'],
    answer: async ({ query: { cursor, ...which }, token }) => {
      const { tasks, next, now } = await handOff.views.tasks({ ...which, before: cursor })
      return {
        tasks: tasks
          .filter(({ facts }) => isWithinLimit(token, facts.taskId))
          .map((row) => summariseTask(row, now)),
        next: nextOf(next),
      }
    },
  })

  operation(app, context, 'GET', '/tasks/:taskId', {
    id: 'viewTask',
    summary: 'A task and its progress',
    tag: 'tasks',
    access: 'task',
    answers: [taskViewSchema, 'The task'],
    answer: async ({ path: { taskId }, token }) => {
      const record = await handOff.views.task(taskId)
      if (record === null) throw unknownTask(taskId)
      requireView(token, record.facts)
      return presentTask(record, handOff.policy)
    },
  })

  operation(app, context, 'GET', '/tasks/:taskId/partitions', {
    id: 'listPartitions',
    summary: 'The partitions of a task, by level and index',
    tag: 'tasks',
    access: 'task',
    query: {
      state: word(partitionStates),
      level: level(),
      indexes,
      name: text({
        maxLength: MAX_PARTITION_NAME_LENGTH,
        description: 'Only the partition with this name, or those whose name begins with the text before `*`',
        examples: ['orders-2026-03-0-17', 'orders-2026-03-0-1*'],
      }),
      holder: text({
        ...instanceIdKeywords,
        description: 'Only partitions of which this instance holds the lease',
        examples: ['loader-7'],
      }),
      reason: text({
        maxLength: MAX_REASON_KEY_LENGTH,
        description:
          'Only partitions whose last failure belongs to the group with this `key`, see `failures` of the task',
      }),
      order: word(partitionOrders, {
        description:
          '`unfinished`: first what was handed out and is not finished, then what was never handed out, in the order of arrival on each level, then what is finished',
      }),
      ...pageOf(asPlace),
    },
    answers: [
      partitionListSchema(tableField),
      'One page of partitions. A short or empty page is not necessarily the last one',
    ],
    answer: async ({ path: { taskId }, query: { cursor, ...which }, token }) => {
      if (which.indexes !== null && which.level === null) throw invalidParameter('indexes', 'needs level')
      requireNameOf(taskId, which.name)
      const page = await handOff.views.partitions({ taskId, ...which, after: cursor })
      if (page === null) throw unknownTask(taskId)
      const { facts, partitions, next } = page
      requireView(token, facts)
      return {
        partitions: partitions.map((record) => withTableField(withLogUrls(presentPartition(facts, record)))),
        next: nextOf(next && [next.level, next.at, next.part]),
      }
    },
  })

  // The states of a level's partitions at a glance, at a cost that does not grow with the level.
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
      const grid = await handOff.views.grid({ taskId, ...query })
      if (grid === null) throw unknownTask(taskId)
      const { task, ...shown } = grid
      requireView(token, task)
      return { taskId, ...shown }
    },
  })
}

function requireNameOf(taskId: string, name: string | null): void {
  if (name === null || name.endsWith('*') || parsePartitionName(taskId, name) !== undefined) return
  throw invalidParameter(
    'name',
    `${explainPartitionName(taskId, name)}, or end in * for names that begin with it`,
  )
}

const parts: readonly PartitionPart[] = ['all', 'begun', 'fresh', 'finished']

function asPlace(position: unknown): PartitionPosition | undefined {
  if (!Array.isArray(position) || position.length !== 3) return undefined
  const [level, at, part] = position as [number, number, PartitionPart]
  return Number.isSafeInteger(level) && Number.isSafeInteger(at) && parts.includes(part)
    ? { level, at, part }
    : undefined
}
