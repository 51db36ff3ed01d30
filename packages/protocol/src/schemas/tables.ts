import Type, { type Static } from 'typebox'
import { MAX_TABLE_TASKS } from '../limits.ts'
import { settingKeywords } from '../setting-keywords.ts'
import { count, orNull, timestamp } from './schema-parts.ts'

const maxLeases = orNull(
  Type.Integer({
    ...settingKeywords.maxLeases,
    description:
      'Maximum number of partitions of the table, over all tasks, that are leased at a time; null for no limit',
    examples: [8],
  }),
)

export const tableSettingsSchema = Type.Object(
  {
    maxLeases,
    paused: Type.Boolean({ description: 'Whether nothing of the table is handed out' }),
  },
  { description: 'The settings of one compute table, over all tasks' },
)
export type TableSettings = Static<typeof tableSettingsSchema>

export const tableSettingsRequestSchema = Type.Object(
  {
    maxLeases: Type.Optional(maxLeases),
    paused: Type.Optional(
      orNull(
        Type.Boolean({ description: 'True stops handing out partitions of the table; false by default' }),
      ),
    ),
  },
  {
    additionalProperties: false,
    description: 'The settings to change. Others stay as they are, and null restores the default',
    examples: [{ maxLeases: 8 }],
  },
)
export type TableSettingsRequest = Static<typeof tableSettingsRequestSchema>

const name = Type.String({ description: '`<schema>.<table>`', examples: ['analytics.orders_result'] })

export const tableSettingsAnswerSchema = Type.Object(
  { table: name, settings: tableSettingsSchema },
  { description: 'A compute table and its settings' },
)
export type TableSettingsAnswer = Static<typeof tableSettingsAnswerSchema>

const perSecond = (what: string) =>
  orNull(
    Type.Number({
      minimum: 0,
      description: `${what} done per second within the last minute; null if there were none`,
    }),
  )

export const tableViewSchema = Type.Object(
  {
    table: name,
    tasks: count({ description: 'Tasks with partitions of the table that wait, are delayed or leased' }),
    taskIds: Type.Array(Type.String({ examples: ['orders-2026-03'] }), {
      maxItems: MAX_TABLE_TASKS,
      description: 'The first of these tasks',
    }),
    leases: count({ description: 'Leases that run on partitions of the table, over all tasks' }),
    workers: count({
      description: 'Instances that hold them; leases without a named holder are not counted',
    }),
    waiting: Type.Object(
      { partitions: count(), records: count() },
      { description: 'What waits to be handed out: ready and held partitions' },
    ),
    pace: Type.Object({
      partitionsPerSecond: perSecond('Partitions'),
      recordsPerSecond: perSecond('Declared records'),
    }),
    lastAskedAt: orNull(
      timestamp({
        description:
          'When a worker last asked for it, by its name or without a choice; null: not since this node leads',
      }),
    ),
    settings: tableSettingsSchema,
  },
  { description: 'A compute table, over all tasks' },
)
export type TableView = Static<typeof tableViewSchema>

export const tableListSchema = Type.Object(
  {
    tables: Type.Array(tableViewSchema),
    next: orNull(Type.String({ description: 'The cursor of the next page; null on the last one' })),
  },
  { description: 'One page of compute tables, by name' },
)
export type TableList = Static<typeof tableListSchema>
