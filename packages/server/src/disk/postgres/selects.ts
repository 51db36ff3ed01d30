import type { Asked, Query, Value } from '../statements.ts'
import { plainArray, textArray } from './dialect.ts'
import type { Row, Statement } from './session/connection.ts'

/** Rows are read as JSON arrays. */
export const selectStatement = <Found>(
  { selected, from }: Query<Found>,
  values: readonly Value[],
): Statement => ({
  text: `SELECT json_build_array(${selected}) AS row FROM ${withValues(from, (at) => `$${at}`, values)}`,
  values,
})

/** The rows for each of these values, which a query has in the same order. */
export function listsStatement<Found>(
  { selected, from }: Query<Found>,
  values: readonly (readonly Value[])[],
): Statement {
  const first = values[0] ?? []
  const arrays = first.map((value, at) => `$${at + 1}::${typeof value === 'string' ? 'text' : 'bigint'}[]`)
  const names = first.map((_, at) => `value${at + 1}`)
  return {
    text: `SELECT (SELECT json_agg(row) FROM
        (SELECT json_build_array(${selected}) AS row FROM ${withValues(from, (at) => `asked.value${at}`, first)}) found) AS list
      FROM unnest(${arrays.join(', ')}) WITH ORDINALITY AS asked (${[...names, 'place'].join(', ')}) ORDER BY place`,
    values: first.map((value, at) => {
      const all = values.map((one) => one[at])
      return typeof value === 'string' ? textArray(all as string[]) : plainArray(all as number[])
    }),
  }
}

export const valuesIn = (row: Row): unknown[] => row['row'] as unknown[]

export const listIn = (row: Row): unknown[][] => (row['list'] ?? []) as unknown[][]

export const byQuery = <Found>(asked: readonly Asked<Found>[]) => [
  ...Map.groupBy(
    asked.map(({ query, values }, place) => ({ query, values, place })),
    ({ query }) => query,
  ),
]

/** Numbers parameters as SQLite does: one without a number is the next one. */
function withValues(text: string, nameOf: (at: number) => string, values: readonly Value[]): string {
  let last = 0
  return text.replaceAll(/\?(\d*)/g, (_, number: string) => {
    const at = number === '' ? last + 1 : Number(number)
    last = Math.max(last, at)
    return `${nameOf(at)}::${typeof values[at - 1] === 'string' ? 'text COLLATE "C"' : 'bigint'}`
  })
}
