import {
  checkChosen,
  chosenKeywords,
  type TableList,
  type TableSettingsAnswer,
  type TableView,
  tableListSchema,
  tableSettingsAnswerSchema,
  tableSettingsRequestSchema,
  tableViewSchema,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { TableDetails } from '../../handoff/views/queries.ts'
import { RequestProblem } from '../answers/problems.ts'
import { timestampOrNull } from '../answers/views.ts'
import { answers } from '../api-document/route-schemas.ts'
import { cursorOf, limitOf, pageParameters, type Query, writeCursor } from '../requests/parameters.ts'
import type { Service } from '../service.ts'
import { brokenControl, controlBody } from './control-routes.ts'
import { limitWithoutLeases } from './settings-routes.ts'

interface TableParams {
  readonly table: string
}

const tableParams = Type.Object({
  table: Type.String({
    ...chosenKeywords.table,
    description: 'The name of the compute table, `<schema>.<table>`; percent-encode reserved characters',
    examples: ['analytics.orders_result'],
  }),
})

export function tableRoutes(app: FastifyInstance, { handOff, requesterOf }: Service): void {
  app.route<{ Querystring: Query }>({
    method: 'GET',
    url: '/tables',
    config: { access: 'overview' },
    schema: {
      operationId: 'listTables',
      summary: 'The compute tables with open work or settings, by name',
      tags: ['tables'],
      querystring: Type.Object(pageParameters),
      response: answers(tableListSchema, 'One page of tables'),
    },
    handler: async ({ query }, reply) => {
      const page = await handOff.views.tables({ after: cursorOf(query, asName), limit: limitOf(query) })
      const list: TableList = {
        tables: page.tables.map(viewTable),
        next: page.next === null ? null : writeCursor(page.next),
      }
      return reply.send(list)
    },
  })

  app.route<{ Params: TableParams }>({
    method: 'GET',
    url: '/tables/:table',
    config: { access: 'overview' },
    schema: {
      operationId: 'viewTable',
      summary: 'A compute table: its leases, what waits, its pace and settings',
      tags: ['tables'],
      params: tableParams,
      response: answers(tableViewSchema, 'The table'),
    },
    handler: async ({ params }, reply) => {
      const name = tableOf(params)
      const table = await handOff.views.table(name)
      if (table === null)
        throw new RequestProblem(
          'table_unknown',
          `no table ${JSON.stringify(name)} has open work or settings`,
        )
      return reply.send(viewTable(table))
    },
  })

  app.route<{ Params: TableParams }>({
    method: 'GET',
    url: '/tables/:table/settings',
    config: { access: 'overview' },
    schema: {
      operationId: 'viewTableSettings',
      summary: 'The settings of a compute table',
      tags: ['tables'],
      params: tableParams,
      response: answers(tableSettingsAnswerSchema, 'The settings'),
    },
    handler: async ({ params }, reply) => {
      const table = tableOf(params)
      const { settings } = (await handOff.views.table(table)) ?? {
        settings: { maxLeases: null, paused: false },
      }
      const answer: TableSettingsAnswer = { table, settings }
      return reply.send(answer)
    },
  })

  app.route<{ Params: TableParams }>({
    method: 'PATCH',
    url: '/tables/:table/settings',
    config: { access: 'fleet' },
    schema: {
      operationId: 'changeTableSettings',
      summary: 'Limit the leases of a compute table, or pause it',
      tags: ['tables'],
      params: tableParams,
      body: tableSettingsRequestSchema,
      response: answers(
        tableSettingsAnswerSchema,
        'The settings that apply from now on; repeating the request has no further effect',
      ),
    },
    handler: async ({ params, body, raw }, reply) => {
      const table = tableOf(params)
      const { maxLeases, paused } = controlBody(tableSettingsRequestSchema, body)
      const settings = await handOff.setTable({
        table,
        by: requesterOf(raw, body),
        ...(maxLeases === undefined ? {} : { maxLeases }),
        ...(paused === undefined ? {} : { paused: paused ?? false }),
      })
      if (settings === null) throw brokenControl([limitWithoutLeases])
      const answer: TableSettingsAnswer = { table, settings }
      return reply.send(answer)
    },
  })
}

/** Validates the path segment, which may decode to any text. */
function tableOf({ table }: TableParams): string {
  // The router also matches an empty segment.
  if (table === '')
    throw new RequestProblem('route_unknown', 'the path has no table; the list of tables is at /tables')
  const checked = checkChosen('table', [table])
  if (checked.ok) return table
  throw new RequestProblem('parameter_invalid', `the table in the path is invalid: ${checked.detail}`)
}

/** Refuses cursors that were never issued. */
const asName = (position: unknown): string | undefined =>
  typeof position === 'string' && checkChosen('table', [position]).ok ? position : undefined

function viewTable({
  table,
  tasks,
  taskIds,
  leases,
  workers,
  waiting,
  pace,
  lastAskedAt,
  settings,
}: TableDetails): TableView {
  return {
    table,
    tasks,
    taskIds: [...taskIds],
    leases,
    workers,
    waiting,
    pace: {
      partitionsPerSecond: rounded(pace?.partitions),
      recordsPerSecond: rounded(pace?.records),
    },
    lastAskedAt: timestampOrNull(lastAskedAt),
    settings,
  }
}

const rounded = (value: number | undefined): number | null =>
  value === undefined ? null : Number(value.toPrecision(4))
