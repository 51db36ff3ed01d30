import {
  comparedFields,
  descriptorFields,
  rareFields,
  statusFields,
  untouched,
} from '../handoff/partition.ts'
import { isTallied, type Section, type StoredRows, sections, storedFields } from '../handoff/table-fields.ts'
import { type Conditions, type Dialect, SqlTable, type TableOptions } from './sql-table.ts'

/** Every table with rows of the hand-off. Its columns follow from the fields of its rows. */
const options: { readonly [Name in Section]: TableOptions<StoredRows[Name]> } = {
  tasks: { name: 'task', key: ['id'], fixed: ['taskId'] },
  lanes: { name: 'lane', key: ['id'], fixed: ['task', 'level', 'table'] },
  levels: { name: 'level', key: ['level'] },
  laneTables: { name: 'lane_table', key: ['lane', 'table'] },
  ranges: { name: 'lane_range', key: ['lane', 'first'] },
  tables: { name: 'task_table', key: ['task', 'name'], order: 'position' },
  keys: { name: 'pull_key', key: ['key'] },
  instances: { name: 'instance', key: ['instanceId'] },
  produced: { name: 'produced_task', key: ['instance', 'task'] },
  // New rows are inserted with the descriptor only.
  partitions: { name: 'partition', key: ['id'], defaults: { ...untouched(), inMixedLane: false } },
  checkpoints: { name: 'checkpoint', key: ['partition'] },
  subscriptions: { name: 'subscription', key: ['id'] },
  deliveries: { name: 'delivery', key: ['subscription', 'event'] },
  throughput: { name: 'throughput', key: ['task', 'step', 'at', 'level'] },
  audit: { name: 'audit', key: ['id'] },
  tableSettings: { name: 'table_settings', key: ['table'] },
}

export type ArchivedTables = { readonly [Name in Section]: SqlTable<StoredRows[Name]> }

export type SqlTables = ReturnType<typeof tablesIn>

export function tablesIn(dialect: Dialect, where: Conditions) {
  const archived = Object.fromEntries(
    sections.map((section) => [
      section,
      new SqlTable(
        dialect,
        storedFields[section] as never,
        { ...options[section], tallied: isTallied(section) } as never,
      ),
    ]),
  ) as unknown as ArchivedTables
  const { partitions } = archived
  return { dialect, where, archived, ...archived, ...partsOf(partitions) }
}

function partsOf(partitions: ArchivedTables['partitions']) {
  const descriptor = Object.keys(descriptorFields) as (keyof typeof descriptorFields)[]
  const isRare: ReadonlySet<string> = new Set([...rareFields, 'inMixedLane'])
  return {
    descriptors: partitions.only(...descriptor),
    plainDescriptors: partitions.only(...descriptor.filter((field) => !isRare.has(field))),
    knownPartitions: partitions.only(...comparedFields),
    statuses: partitions.only('id', ...(Object.keys(statusFields) as (keyof typeof statusFields)[])),
  }
}
