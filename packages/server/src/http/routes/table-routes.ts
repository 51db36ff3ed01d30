import {
  checkChosen,
  type TableView,
  tableListSchema,
  tableSettingsAnswerSchema,
  tableSettingsRequestSchema,
  tableViewSchema,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import type { TableDetails } from '../../handoff/views/queries.ts'
import { RequestProblem } from '../answers/problems.ts'
import { timestampOrNull } from '../answers/wire-values.ts'
import { nextOf, pageOf } from '../requests/parameters.ts'
import type { RouteContext } from '../route-context.ts'
import { operation } from './operation.ts'
import { withoutLeases } from './settings-routes.ts'

export function tableRoutes(app: FastifyInstance, context: RouteContext): void {
  const { handOff, requesterOf } = context
  operation(app, context, 'GET', '/tables', {
    id: 'listTables',
    summary: 'The compute tables with open work or settings, by name',
    tag: 'tables',
    access: 'overview',
    query: pageOf(asName),
    answers: [tableListSchema, 'One page of tables'],
    answer: async ({ query: { cursor, limit } }) => {
      const { tables, next } = await handOff.views.tables({ after: cursor, limit })
      return { tables: tables.map(presentTable), next: nextOf(next) }
    },
  })

  operation(app, context, 'GET', '/tables/:table', {
    id: 'viewTable',
    summary: 'A compute table: its leases, what waits, its pace and settings',
    tag: 'tables',
    access: 'overview',
    answers: [tableViewSchema, 'The table'],
    answer: async ({ path: { table } }) => {
      const found = await handOff.views.table(table)
      if (found !== null) return presentTable(found)
      throw new RequestProblem('table_unknown', `no table ${JSON.stringify(table)} has open work or settings`)
    },
  })

  operation(app, context, 'GET', '/tables/:table/settings', {
    id: 'viewTableSettings',
    summary: 'The settings of a compute table',
    tag: 'tables',
    access: 'overview',
    answers: [tableSettingsAnswerSchema, 'The settings'],
    answer: async ({ path: { table } }) => {
      const found = await handOff.views.table(table)
      return { table, settings: found?.settings ?? { maxLeases: null, paused: false } }
    },
  })

  operation(app, context, 'PATCH', '/tables/:table/settings', {
    id: 'changeTableSettings',
    summary: 'Limit the leases of a compute table, or pause it',
    tag: 'tables',
    access: 'fleet',
    body: tableSettingsRequestSchema,
    answers: [
      tableSettingsAnswerSchema,
      'The settings that apply from now on; repeating the request has no further effect',
    ],
    answer: async ({ path: { table }, body, raw }) => {
      const { maxLeases, paused } = body
      const settings = await handOff.setTable({
        table,
        by: requesterOf(raw, body),
        ...(maxLeases === undefined ? {} : { maxLeases }),
        ...(paused === undefined ? {} : { paused: paused ?? false }),
      })
      if (settings === null) throw withoutLeases('maxLeases')
      return { table, settings }
    },
  })
}

/** Refuses cursors that were never issued. */
const asName = (position: unknown): string | undefined =>
  typeof position === 'string' && checkChosen('table', [position]).ok ? position : undefined

const presentTable = ({ pace, lastAskedAt, ...table }: TableDetails): TableView => ({
  ...table,
  pace: {
    partitionsPerSecond: rounded(pace?.partitions),
    recordsPerSecond: rounded(pace?.records),
  },
  lastAskedAt: timestampOrNull(lastAskedAt),
})

const rounded = (value: number | undefined): number | null =>
  value === undefined ? null : Number(value.toPrecision(4))
