import { MAX_PAGE_LENGTH } from '@baton/protocol'
import Type from 'typebox'
import { RequestProblem } from '../answers/problems.ts'

const DEFAULT_LIMIT = 100

/** Query parameters from the router. A repeated parameter is an array. */
export type Query = Readonly<Record<string, string | string[] | undefined>>

export const pageParameters = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_PAGE_LENGTH,
      default: DEFAULT_LIMIT,
      description: 'Entries per page',
    }),
  ),
  cursor: Type.Optional(
    Type.String({ description: '`next` of the page before; a page without `next` is the last' }),
  ),
}

/** A parameter that must not be repeated. An empty value counts as given. */
export function once(query: Query, name: string): string | undefined {
  const value = query[name]
  if (Array.isArray(value)) throw invalid(name, 'must be given once')
  return value
}

function invalid(name: string, rule: string): RequestProblem {
  return new RequestProblem('parameter_invalid', `the query parameter ${name} ${rule}`)
}

export function limitOf(query: Query): number {
  const text = once(query, 'limit')
  if (text === undefined) return DEFAULT_LIMIT
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > MAX_PAGE_LENGTH)
    throw invalid('limit', `must be an integer from 1 to ${MAX_PAGE_LENGTH}`)
  return limit
}

export function numberOf(query: Query, name: string): number | null {
  const text = once(query, name)
  if (text === undefined) return null
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(number)) throw invalid(name, 'must be a non-negative integer')
  return number
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

export function timeOf(query: Query, name: string): number | null {
  const text = once(query, name)
  if (text === undefined) return null
  const millis = TIME.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(millis) || millis < 0)
    throw invalid(name, 'must be a time with its offset, like 2026-03-01T12:00:00Z (a + is written as %2B)')
  return millis
}

export function wordOf<Word extends string>(query: Query, name: string, words: readonly Word[]): Word | null {
  const text = once(query, name)
  if (text === undefined) return null
  const word = words.find((candidate) => candidate === text)
  if (word === undefined) throw invalid(name, `must be one of ${words.join(', ')}`)
  return word
}

/** A flag: `true`, or omitted. */
export function isGiven(query: Query, name: string): boolean {
  const text = once(query, name)
  if (text !== undefined && text !== 'true') throw invalid(name, 'must be true, or be left out')
  return text === 'true'
}

/** Cursors are opaque to clients, so that their content can change. */
export function writeCursor(position: unknown): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url')
}

/** `read` returns undefined for a position that this list never issues. */
export function cursorOf<Position>(
  query: Query,
  read: (position: unknown) => Position | undefined,
): Position | null {
  const text = once(query, 'cursor')
  if (text === undefined) return null
  let position: Position | undefined
  try {
    position = read(JSON.parse(Buffer.from(text, 'base64url').toString('utf8')))
  } catch {
    position = undefined
  }
  if (position === undefined) throw invalid('cursor', 'must be the next of an earlier page')
  return position
}
