import type { InstanceTotals } from '@baton/protocol'
import type { Fields, Kind } from '../handoff/fields.ts'
import { type PartitionState, partitionStates } from '../handoff/rules/life-cycle.ts'

// What the tables of SQLite and PostgreSQL have in common.

export interface TableOptions<Row> {
  /** Whether the rows have counts by state. */
  readonly tallied?: boolean
  /** Names of columns that do not follow from the field. */
  readonly named?: { readonly [Field in keyof Row]?: string }
  /** Values of columns that are not given when a row is inserted. */
  readonly defaults?: Partial<Row>
  /** Further SQL in the declarations of columns. */
  readonly declared?: { readonly [Field in keyof Row]?: string }
}

export interface Column {
  readonly name: string
  readonly field: string
  /** Of a count: the state that it counts. */
  readonly state: PartitionState | null
  readonly kind: Kind
  readonly declared: string
}

export function columnsOf<Row>(fields: Fields<Row>, options: TableOptions<Row>): Column[] {
  const named: Readonly<Record<string, string | undefined>> = options.named ?? {}
  const declared: Readonly<Record<string, string | undefined>> = options.declared ?? {}
  const defaults: Readonly<Record<string, unknown>> = options.defaults ?? {}
  const columns = Object.entries<Kind>(fields).map(([field, kind]) => ({
    name: named[field] ?? columnOf(field),
    field,
    state: null,
    kind,
    declared: declared[field] ?? defaultOf(defaults[field] ?? null),
  }))
  return options.tallied === true ? [...columns, ...tallies] : columns
}

const tallies = partitionStates.flatMap((state) =>
  ['partitions', 'records'].map(
    (field): Column => ({ name: `${state}_${field}`, field, state, kind: 'integer', declared: '' }),
  ),
)

/** Fields whose names SQL reserves. */
const reserved: Readonly<Record<string, string>> = { index: 'idx', table: 'name' }

const columnOf = (field: string): string =>
  reserved[field] ?? field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

function defaultOf(value: unknown): string {
  if (value === null) return ''
  return `DEFAULT ${typeof value === 'number' ? value : `'${value}'`}`
}

// Expressions for `compiled`.

export const valueIn = ({ field, state }: Column): string =>
  state === null ? `row.${field}` : `row.${field}.${state}`

/** A row; `valueAt` is the expression for the value of a column. */
export function rowOf(columns: readonly Column[], valueAt: (column: Column, at: number) => string): string {
  const values = columns.map((column, at) => ({ ...column, value: valueAt(column, at) }))
  const members = [...Map.groupBy(values, ({ field }) => field)].map(([field, found]) => {
    const counts = found.filter(({ state }) => state !== null).map(({ state, value }) => `${state}: ${value}`)
    return `${field}: ${counts.length > 0 ? `{ ${counts.join(', ')} }` : found[0]?.value}`
  })
  return `({ ${members.join(', ')} })`
}

// Of the table of instances.

/** The columns of the totals, by field. */
export const totalColumns = {
  pulls: 'pulls',
  partitions: 'partitions',
  records: 'records',
  done: 'done',
  failed: 'failed',
  released: 'released',
  expired: 'expired',
  revoked: 'revoked',
  callBacks: 'call_backs',
  calledBack: 'called_back',
} as const satisfies Record<keyof InstanceTotals, string>

export const identityColumns = ['role', 'version', 'started_at', 'draining']

/** In SQL: a client uses the name of a known node. Its totals are added; the node's record stays as it is. */
export const TAKES_A_NODES_NAME = 'excluded.started_at IS NULL AND instance.started_at IS NOT NULL'
