import type { IncomingMessage } from 'node:http'
import { checkChosen, didYouMean, MAX_PAGE_LENGTH } from '@baton/protocol'
import type { FastifyRequest, RouteOptions } from 'fastify'
import Type, { type TSchema } from 'typebox'
import { invalidRequest, RequestProblem } from '../answers/problems.ts'

/** After admission. The fast path parses queries strictly itself, and serves no repeated headers. */
export function checkingParameters({ config, schema }: RouteOptions) {
  const query = schema?.querystring as { properties?: object } | undefined
  // Caches and bookmarks may add parameters to the page and its files.
  const known = config?.access === 'open' ? undefined : Object.keys(query?.properties ?? {})
  return (request: FastifyRequest, _reply: unknown, done: (fault?: Error) => void): void => {
    done(senderFault(request.raw) ?? (known === undefined ? undefined : queryFault(request, known)))
  }
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
  return invalidRequest(`${JSON.stringify(name)} is not a query parameter of this route; ${advice}`)
}

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
  return invalidRequest('X-Instance-Id must not be repeated')
}

/** Query parameters from the router. A repeated parameter is an array. */
export type Query = Readonly<Record<string, string | string[] | undefined>>

/** How a query parameter is documented, and how it is read. */
export interface Parameter<Value> {
  readonly schema: TSchema
  read(given: Query[string], name: string): Value
}

export type Parameters = Readonly<Record<string, Parameter<unknown>>>

export type ValuesOf<Known extends Parameters> = {
  readonly [Name in keyof Known]: Known[Name] extends Parameter<infer Value> ? Value : never
}

export const querySchema = (known: Parameters) =>
  Type.Object(
    Object.fromEntries(Object.entries(known).map(([name, { schema }]) => [name, Type.Optional(schema)])),
  )

export const readQuery = <Known extends Parameters>(known: Known, query: Query): ValuesOf<Known> =>
  Object.fromEntries(
    Object.entries(known).map(([name, parameter]) => [name, parameter.read(query[name], name)]),
  ) as ValuesOf<Known>

export const invalidParameter = (name: string, rule: string) =>
  invalidRequest(`the query parameter ${name} ${rule}`)

/** A parameter that must not be repeated. An empty value counts as given. `refuse` says what it must be. */
export function parameter<Value, Absent>(
  schema: TSchema,
  absent: Absent,
  read: (text: string, refuse: (rule: string) => never) => Value,
): Parameter<Value | Absent> {
  return {
    schema,
    read: (given, name) => {
      const refuse = (rule: string): never => {
        throw invalidParameter(name, rule)
      }
      if (Array.isArray(given)) return refuse('must not be repeated')
      return given === undefined ? absent : read(given, refuse)
    },
  }
}

/** Any text that does not restrict what is stored. */
export const search = (description: string) => parameter(Type.String({ description }), null, (text) => text)

interface Documented {
  readonly description: string
  readonly examples?: readonly string[]
}

/** A text of at most `maxLength` characters. Stores cannot represent NUL. */
export const text = ({ maxLength, ...documented }: { readonly maxLength: number } & Documented) =>
  parameter(Type.String({ minLength: 1, maxLength, ...documented }), null, (given, refuse) =>
    given === '' || given.includes('\0') || [...given].length > maxLength
      ? refuse(`must have 1 to ${maxLength} characters, none of them NUL`)
      : given,
  )

interface IntegerOptions {
  readonly minimum: number
  readonly maximum: number
  readonly default: number
  readonly description: string
  readonly examples?: readonly number[]
}

export const integer = (options: IntegerOptions) =>
  parameter(
    Type.Integer({ ...options, examples: [...(options.examples ?? [])] }),
    options.default,
    (given, refuse) => {
      const number = /^\d{1,16}$/.test(given) ? Number(given) : Number.NaN
      return number >= options.minimum && number <= options.maximum
        ? number
        : refuse(`must be an integer from ${options.minimum} to ${options.maximum}`)
    },
  )

export const level = (documented: object = {}) =>
  parameter(Type.Integer({ minimum: 0, ...documented }), null, (given, refuse) => {
    const number = /^\d{1,16}$/.test(given) ? Number(given) : Number.NaN
    return Number.isSafeInteger(number) ? number : refuse('must be a non-negative integer')
  })

export const word = <Word extends string>(words: readonly Word[], documented: object = {}) =>
  parameter(
    Type.Unsafe<Word>({ type: 'string', enum: [...words], ...documented }),
    null,
    (given, refuse) =>
      words.find((candidate) => candidate === given) ?? refuse(`must be one of ${words.join(', ')}`),
  )

export const flag = (description: string) =>
  parameter(Type.Unsafe<boolean>({ type: 'boolean', enum: [true], description }), false, (given, refuse) =>
    given === 'true' ? true : refuse('must be true, or be omitted'),
  )

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/

export const time = (description: string) =>
  parameter(Type.String({ format: 'date-time', description }), null, (given, refuse) => {
    const millis = TIME.test(given) ? Date.parse(given) : Number.NaN
    if (Number.isNaN(millis) || millis < 0)
      return refuse('must be a time with a UTC offset, such as 2026-03-01T12:00:00Z (encode + as %2B)')
    // `Date.parse` reads February 30 as March 2.
    const day = given.slice(0, 10)
    return new Date(day).toISOString().startsWith(day) ? millis : refuse('has a day that does not exist')
  })

/** The tables or tasks to which a request is restricted; null for no restriction. */
export function chosenNames(kind: 'table' | 'task', given: readonly string[]): readonly string[] | null {
  if (given.length === 0) return null
  const checked = checkChosen(kind, given)
  if (checked.ok) return checked.names
  throw invalidRequest(checked.detail)
}

/** Of a list. Cursors are opaque. `read` returns undefined for a position that this list never issues. */
export const pageOf = <Position>(read: (position: unknown) => Position | undefined) => ({
  limit: integer({
    minimum: 1,
    maximum: MAX_PAGE_LENGTH,
    default: 100,
    description: 'Maximum number of entries per page',
  }),
  cursor: parameter(
    Type.String({
      description: 'The value of `next` on the previous page; a page without `next` is the last one',
    }),
    null,
    (given, refuse) => positionIn(given, read) ?? refuse('must be the value of next on an earlier page'),
  ),
})

function positionIn<Position>(cursor: string, read: (position: unknown) => Position | undefined) {
  try {
    return read(JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')))
  } catch {
    return undefined
  }
}

export const safeInteger = (position: unknown): number | undefined =>
  Number.isSafeInteger(position) ? (position as number) : undefined

export const nextOf = (position: unknown): string | null =>
  position === null ? null : Buffer.from(JSON.stringify(position)).toString('base64url')
