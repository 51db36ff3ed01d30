import type { IncomingMessage } from 'node:http'
import { checkChosen, didYouMean, MAX_PAGE_LENGTH, MAX_TASK_ID_LENGTH } from '@baton/protocol'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import Type from 'typebox'
import { RequestProblem } from '../answers/problems.ts'

/**
 * Checks that apply to the parameters of every route, after admission. The fast path does not need them: it
 * parses queries strictly, and does not serve requests with a repeated header.
 */
export function checkParameters(app: FastifyInstance): void {
  app.addHook('onRoute', (route: RouteOptions) => {
    const { access } = route.config ?? {}
    if (access === 'probe') return
    // Caches and bookmarks may add parameters to the page and its files.
    const known = access === 'open' ? undefined : parametersOf(route)
    const check = (request: FastifyRequest, _reply: unknown, done: (fault?: Error) => void): void => {
      done(senderFault(request.raw) ?? (known === undefined ? undefined : queryFault(request, known)))
    }
    const others = route.onRequest === undefined ? [] : [route.onRequest].flat()
    route.onRequest = [...others, check]
  })
}

function parametersOf({ schema }: RouteOptions): readonly string[] {
  const query = schema?.querystring as { properties?: object } | undefined
  return Object.keys(query?.properties ?? {})
}

/** Ignoring a filter that the route does not know would return everything instead of a selection. */
function queryFault({ url, query }: FastifyRequest, known: readonly string[]): RequestProblem | undefined {
  const at = url.indexOf('?')
  if (at === -1) return undefined
  if (!isEncoded(url.slice(at + 1))) {
    return new RequestProblem('bad_request', 'the query is not validly percent-encoded UTF-8')
  }
  const unknown = Object.keys(query as object).find((name) => !known.includes(name))
  return unknown === undefined ? undefined : unknownParameter(unknown, known)
}

export function unknownParameter(name: string, known: readonly string[]): RequestProblem {
  const meant = didYouMean(name, known)
  const all = new Intl.ListFormat('en').format(known)
  const advice =
    meant !== undefined
      ? `did you mean ${meant}?`
      : known.length === 0
        ? 'it has none'
        : known.length === 1
          ? `its only parameter is ${all}`
          : `its parameters are ${all}`
  return new RequestProblem(
    'parameter_invalid',
    `${JSON.stringify(name)} is not a query parameter of this route; ${advice}`,
  )
}

/** Whether a text is validly percent-encoded UTF-8. */
export function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** Node joins repeated headers with a comma, and the result may be a valid name. */
function senderFault({ headers, rawHeaders }: IncomingMessage): RequestProblem | undefined {
  if (!String(headers['x-instance-id'] ?? '').includes(',')) return undefined
  const names = rawHeaders.filter((_, at) => at % 2 === 0)
  if (names.filter((name) => name.toLowerCase() === 'x-instance-id').length < 2) return undefined
  return new RequestProblem('parameter_invalid', 'X-Instance-Id must not be repeated')
}

const DEFAULT_LIMIT = 100

/** Query parameters from the router. A repeated parameter is an array. */
export type Query = Readonly<Record<string, string | string[] | undefined>>

export const pageParameters = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_PAGE_LENGTH,
      default: DEFAULT_LIMIT,
      description: 'Maximum number of entries per page',
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      description: 'The value of `next` on the previous page; a page without `next` is the last one',
    }),
  ),
}

/** A parameter that must not be repeated. An empty value counts as given. */
export function once(query: Query, name: string): string | undefined {
  const value = query[name]
  if (Array.isArray(value)) throw invalid(name, 'must not be repeated')
  return value
}

function invalid(name: string, rule: string): RequestProblem {
  return new RequestProblem('parameter_invalid', `the query parameter ${name} ${rule}`)
}

/** A text; null if it is omitted. Stores cannot represent NUL. */
export function textOf(query: Query, name: string, most: number): string | null {
  const text = once(query, name)
  if (text === undefined) return null
  if (text === '' || text.includes('\0') || [...text].length > most)
    throw invalid(name, `must have 1 to ${most} characters, none of them NUL`)
  return text
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
    throw invalid(name, 'must be a time with a UTC offset, such as 2026-03-01T12:00:00Z (encode + as %2B)')
  // `Date.parse` reads February 30 as March 2.
  const day = text.slice(0, 10)
  if (!new Date(day).toISOString().startsWith(day)) throw invalid(name, 'has a day that does not exist')
  return millis
}

export function wordOf<Word extends string>(query: Query, name: string, words: readonly Word[]): Word | null {
  const text = once(query, name)
  if (text === undefined) return null
  const word = words.find((candidate) => candidate === text)
  if (word === undefined) throw invalid(name, `must be one of ${words.join(', ')}`)
  return word
}

/** The tables or tasks to which a request is restricted; null for no restriction. */
export function chosenNames(kind: 'table' | 'task', given: readonly string[]): readonly string[] | null {
  if (given.length === 0) return null
  const checked = checkChosen(kind, given)
  if (checked.ok) return checked.names
  throw new RequestProblem('parameter_invalid', checked.detail)
}

/** A flag: `true`, or omitted. */
export function isGiven(query: Query, name: string): boolean {
  const text = once(query, name)
  if (text !== undefined && text !== 'true') throw invalid(name, 'must be true, or be omitted')
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
  if (position === undefined) throw invalid('cursor', 'must be the value of next on an earlier page')
  return position
}

export interface TaskParams {
  readonly taskId: string
}

export const taskParams = Type.Object({
  taskId: Type.String({
    minLength: 1,
    maxLength: MAX_TASK_ID_LENGTH,
    description: 'The task id; percent-encode slashes and other reserved characters',
    examples: ['orders-2026-03'],
  }),
})

/** The task id, decoded by the router. NUL is refused, because stores cannot represent it in a text. */
export function taskIdOf({ taskId }: TaskParams): string {
  // The router also matches an empty segment.
  if (taskId === '') {
    throw new RequestProblem('route_unknown', 'the path has no task id; the list of tasks is at /tasks')
  }
  if (!taskId.includes('\0') && [...taskId].length <= MAX_TASK_ID_LENGTH) return taskId
  throw new RequestProblem(
    'parameter_invalid',
    `the task id in the path must have at most ${MAX_TASK_ID_LENGTH} characters and no NUL`,
  )
}

export function unknownTask(taskId: string): RequestProblem {
  return new RequestProblem('task_unknown', `no task ${JSON.stringify(taskId)} was called back`)
}
