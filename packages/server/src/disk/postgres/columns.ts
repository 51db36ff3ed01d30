import { partitionStates } from '../../handoff/rules/life-cycle.ts'
import { emptyTally, type Tally } from '../../handoff/rules/task-facts.ts'

/**
 * The type of a field. `number` and `big` are both bigint in PostgreSQL; a `big` may exceed a safe integer,
 * is a BigInt here, and is sent as text in the JSON arrays in which rows are read. `kept` is JSON whose
 * stored value is kept when null is written. `optional` is a text that is never empty and mostly null.
 */
type Kind = 'number' | 'big' | 'text' | 'optional' | 'flag' | 'json' | 'kept'

const sqlTypes = {
  number: 'bigint',
  big: 'bigint',
  text: 'text',
  optional: 'text',
  flag: 'boolean',
  json: 'json',
  kept: 'json',
} as const

interface Tallied {
  readonly partitions: Tally
  readonly records: Tally
}

interface Column {
  readonly name: string
  readonly kind: Kind
  get(row: object): unknown
}

type Fields<Stored> = {
  readonly [Field in keyof Stored as Stored[Field] extends Tally ? never : Field]:
    | Kind
    | { readonly kind: Kind; readonly column: string }
}

/** The columns of a table. Builds the SQL that writes and reads its rows, and converts the values. */
export class Columns<Stored extends object> {
  readonly #columns: readonly Column[]
  readonly #fields: readonly (readonly [field: string, isBig: boolean])[]
  readonly #hasTallies: boolean

  constructor(fields: Fields<Stored>, { tallies = false } = {}) {
    const named = Object.entries<Kind | { kind: Kind; column: string }>(fields).map(([field, given]) => {
      const { kind, column } = typeof given === 'string' ? { kind: given, column: snake(field) } : given
      return { field, kind, column }
    })
    this.#fields = named.map(({ field, kind }) => [field, kind === 'big'])
    this.#hasTallies = tallies
    const plain = named.map(({ field, kind, column }) => ({
      name: column,
      kind,
      get: (row: object) => (row as Record<string, unknown>)[field],
    }))
    this.#columns = tallies ? [...plain, ...tallyColumns('partitions'), ...tallyColumns('records')] : plain
  }

  get names(): string[] {
    return this.#columns.map(({ name }) => name)
  }

  /** The fields of a row that was read. */
  get fields(): string[] {
    return [...this.#fields.map(([field]) => field), ...(this.#hasTallies ? ['partitions', 'records'] : [])]
  }

  /** In SQL: the SET list of an upsert. */
  changes(table: string, key: string): string {
    const changed = this.#columns.filter(({ name }) => name !== key)
    return changed
      .map(({ name, kind }) =>
        kind === 'kept'
          ? `${name} = coalesce(excluded.${name}, ${table}.${name})`
          : `${name} = excluded.${name}`,
      )
      .join(', ')
  }

  /** In SQL: the columns of a row as one JSON array. */
  asJson(alias: string): string {
    const values = this.#columns.map(({ name, kind }) => `${alias}.${name}${kind === 'big' ? '::text' : ''}`)
    return `json_build_array(${values.join(', ')})`
  }

  /** Reads an array made by `asJson`. */
  read(values: readonly unknown[]): Stored {
    const row: Record<string, unknown> = {}
    let at = 0
    for (const [field, isBig] of this.#fields) {
      const value = values[at]
      row[field] = isBig && value !== null ? BigInt(value as string) : value
      at += 1
    }
    if (this.#hasTallies) {
      row['partitions'] = readTally(values, at)
      row['records'] = readTally(values, at + partitionStates.length)
    }
    return row as Stored
  }

  /** In SQL: one array parameter per column, starting with parameter `first`. */
  arrayParameters(first: number): string {
    return this.#columns.map(({ kind }, at) => `$${first + at}::${sqlTypes[kind]}[]`).join(', ')
  }

  /** In SQL: the rows of these array parameters. */
  unnest(alias: string, firstParameter = 1): string {
    return `unnest(${this.arrayParameters(firstParameter)}) AS ${alias} (${this.names.join(', ')})`
  }

  /**
   * In SQL: the values of such a row. An absent `optional` is sent as an empty text, because NULL in an array
   * depends on array_nulls.
   */
  from(alias: string): string {
    return this.#columns
      .map(({ name, kind }) => (kind === 'optional' ? `nullif(${alias}.${name}, '')` : `${alias}.${name}`))
      .join(', ')
  }

  /** The values of the array parameters. */
  arrays(rows: readonly Stored[]): string[] {
    return this.#columns.map(({ kind, get }) => {
      if (kind === 'json' || kind === 'kept') return textArray(rows.map((row) => asJson(get(row))))
      const values = rows.map((row) => get(row))
      if (kind === 'optional') return optionalArray(values as (string | null)[])
      return kind === 'text' ? textArray(values as (string | null)[]) : plainArray(values as Plain[])
    })
  }
}

type Plain = number | bigint | boolean | null

/** A PostgreSQL array literal of elements that need no quotes. */
export function plainArray(elements: readonly Plain[]): string {
  let text = '{'
  for (let at = 0; at < elements.length; at += 1) text += `${at === 0 ? '' : ','}${elements[at] ?? 'NULL'}`
  return `${text}}`
}

const NEEDS_ESCAPE = /["\\]/

export function textArray(elements: readonly (string | null)[]): string {
  let text = '{'
  for (let at = 0; at < elements.length; at += 1) {
    const element = elements[at] ?? null
    const quoted =
      element === null
        ? 'NULL'
        : `"${NEEDS_ESCAPE.test(element) ? element.replaceAll(/["\\]/g, '\\$&') : element}"`
    text += at === 0 ? quoted : `,${quoted}`
  }
  return `${text}}`
}

/** An array without any value is sent empty: unnest pads shorter arrays with NULL. */
function optionalArray(elements: readonly (string | null)[]): string {
  const hasNone = elements.every((element) => element === null)
  return hasNone ? '{}' : textArray(elements.map((element) => element ?? ''))
}

function tallyColumns(what: keyof Tallied): Column[] {
  return partitionStates.map((state) => ({
    name: `${state}_${what}`,
    kind: 'number',
    get: (row) => (row as Tallied)[what][state],
  }))
}

function readTally(values: readonly unknown[], from: number): Tally {
  const tally = emptyTally()
  for (const [at, state] of partitionStates.entries()) tally[state] = values[from + at] as number
  return tally
}

const asJson = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))

const snake = (field: string): string => field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
