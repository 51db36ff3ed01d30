import type { Tally } from './rules/task.ts'

/**
 * How a field is stored. A field whose kind ends with a question mark may be null.
 * - `key`: an integer, the primary key of the row
 * - `small`: an integer below 2^31
 * - `tag`: a 64-bit integer, a BigInt in memory
 * - `time`: milliseconds since 1970
 * - `filled`: a text that is never empty
 * - `list`: an array, mostly empty
 * - `kept`: JSON; writing null keeps the stored value
 */
export type Kind =
  | 'key'
  | 'integer'
  | 'integer?'
  | 'small'
  | 'tag'
  | 'time?'
  | 'text'
  | 'text?'
  | 'filled?'
  | 'flag'
  | 'json'
  | 'json?'
  | 'list'
  | 'kept?'

type Plain<Value> = Value extends number
  ? 'key' | 'integer' | 'small' | 'time'
  : Value extends bigint
    ? 'tag'
    : Value extends string
      ? 'text' | 'filled'
      : Value extends boolean
        ? 'flag'
        : 'json' | 'list' | 'kept'

type KindOf<Value> = Kind & (null extends Value ? `${Plain<NonNullable<Value>>}?` : Plain<Value>)

/** The fields of a row and their kinds. Counts by state are not listed: a table has them or not. */
export type Fields<Row> = {
  readonly [Field in keyof Row as Row[Field] extends Tally ? never : Field]-?: KindOf<Row[Field]>
}

/** For the type checker only. */
export interface Of<Value> {
  readonly valueType: Value
}

/** The kind of a field whose values have this type, which says more than the kind. */
export const of = <Value>(kind: KindOf<Value>) => kind as KindOf<Value> & Of<Value>

interface UsualValues extends Record<'key' | 'integer' | 'small' | 'time', number> {
  readonly tag: bigint
  readonly text: string
  readonly filled: string
  readonly flag: boolean
}
type ValueOf<FieldKind> =
  FieldKind extends Of<infer Value>
    ? Value
    : FieldKind extends `${infer Usual extends keyof UsualValues}?`
      ? UsualValues[Usual] | null
      : FieldKind extends keyof UsualValues
        ? UsualValues[FieldKind]
        : never

export type RowOf<List> = { readonly [Field in keyof List]: ValueOf<List[Field]> }
export type MutableRowOf<List> = { -readonly [Field in keyof List]: ValueOf<List[Field]> }

export const namesOf = <List extends object>(fields: List): (keyof List & string)[] =>
  Object.keys(fields) as (keyof List & string)[]

/**
 * Compiles a function from lists of fields. Most of the work with rows is to copy them, and code that names
 * their fields is many times faster than a loop over the names. `scope` has the values that `expression` uses
 * in addition to the parameters.
 */
export function compiled<Result extends (...values: never[]) => unknown>(
  parameters: string,
  expression: string,
  scope: Readonly<Record<string, unknown>> = {},
): Result {
  const made = new Function(...Object.keys(scope), `return (${parameters}) => ${expression}`)
  return made(...Object.values(scope)) as Result
}

/** A function that copies these fields of a row, and no others. */
export const copierOf = <Row, Name extends keyof Row & string>(
  names: readonly Name[],
): ((row: Row) => { -readonly [Field in Name]: Row[Field] }) =>
  compiled('row', `({ ${names.map((name) => `${name}: row.${name}`).join(', ')} })`)

/** A function that lists the values of these fields. */
export const listerOf = <Row>(names: readonly (keyof Row & string)[]): ((row: Row) => unknown[]) =>
  compiled('row', `[${names.map((name) => `row.${name}`).join(', ')}]`)

/** A function that makes a row of such a list. A field that the list lacks is null. */
export const rowMakerOf = <Row>(
  names: readonly (keyof Row & string)[],
): ((values: readonly unknown[]) => Row) =>
  compiled('values', `({ ${names.map((name, index) => `${name}: values[${index}] ?? null`).join(', ')} })`)

const EMPTY: Partial<Record<Kind, string>> = { text: "''", flag: 'false', list: '[]', tag: '0n' }

/** A function that makes rows in which every field is null, empty or zero. */
export const emptyRowOf = <List extends Readonly<Record<string, Kind>>>(
  fields: List,
): (() => MutableRowOf<List>) => {
  const values = Object.entries(fields).map(
    ([name, kind]) => `${name}: ${kind.endsWith('?') ? 'null' : (EMPTY[kind] ?? '0')}`,
  )
  return compiled('', `({ ${values.join(', ')} })`)
}
