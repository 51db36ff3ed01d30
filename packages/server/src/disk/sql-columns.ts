import type { Fields, Kind } from '../handoff/fields.ts'

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
  readonly field: string
  readonly name: string
  readonly kind: Kind
  readonly declared: string
}

export function columnsOf<Row>(fields: Fields<Row>, options: TableOptions<Row>): Column[] {
  const named: Readonly<Record<string, string | undefined>> = options.named ?? {}
  const declared: Readonly<Record<string, string | undefined>> = options.declared ?? {}
  const defaults: Readonly<Record<string, unknown>> = options.defaults ?? {}
  return Object.entries<Kind>(fields).map(([field, kind]) => ({
    field,
    name: named[field] ?? columnOf(field),
    kind,
    declared: declared[field] ?? defaultOf(defaults[field] ?? null),
  }))
}

/** Fields whose names SQL reserves. */
const reserved: Readonly<Record<string, string>> = { index: 'idx', table: 'name' }

const columnOf = (field: string): string =>
  reserved[field] ?? field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

function defaultOf(value: unknown): string {
  if (value === null) return ''
  return `DEFAULT ${typeof value === 'number' ? value : `'${value}'`}`
}
