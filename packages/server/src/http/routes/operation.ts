import type { IncomingMessage } from 'node:http'
import {
  type CheckFailure,
  checkChosen,
  checkInstanceId,
  chosenKeywords,
  instanceIdSchema,
  MAX_LISTED_VIOLATIONS,
  MAX_PARTITION_NAME_LENGTH,
  MAX_TASK_ID_LENGTH,
  objectFaults,
  type Violation,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type, { type Static, type TObject, type TSchema } from 'typebox'
import { Check } from 'typebox/schema'
import type { Access } from '../admission/access.ts'
import { requireTaskLimit } from '../admission/token-limits.ts'
import type { Token, TokenLookup } from '../admission/tokens.ts'
import { brokenContract, invalidRequest, RequestProblem } from '../answers/problems.ts'
import { answers } from '../api-document/route-schemas.ts'
import { type Parameters, type Query, querySchema, readQuery, type ValuesOf } from '../requests/parameters.ts'

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

type NamesIn<Url extends string> = Url extends `${string}/:${infer Name}/${infer Rest}`
  ? Name | NamesIn<`/${Rest}`>
  : Url extends `${string}/:${infer Name}`
    ? Name
    : never

type Answered<Answer extends TSchema> = Readonly<Static<Answer>>

/** What the handler of an operation gets: all of it is checked. */
interface Asked<Url extends string, Known extends Parameters, Body extends TObject> {
  readonly path: Readonly<Record<NamesIn<Url>, string>>
  readonly query: ValuesOf<Known>
  readonly body: Static<Body>
  readonly token: Token | null
  readonly raw: IncomingMessage
}

interface Operation<
  Url extends string,
  Answer extends TSchema,
  Known extends Parameters,
  Body extends TObject,
> {
  readonly id: string
  readonly summary: string
  readonly tag: 'tasks' | 'tables' | 'instances' | 'subscriptions' | 'health'
  readonly access: Access
  readonly servedByAll?: boolean
  readonly query?: Known
  /** Without one, the body of a POST must be empty, or an object without fields. */
  readonly body?: Body
  readonly bodyOptional?: boolean
  /** With another type than JSON, the answer is a stream, and there is no HEAD. */
  readonly answers: readonly [schema: Answer, description: string, type?: string]
  answer(asked: Asked<Url, Known, Body>): Answered<Answer> | Promise<Answered<Answer>>
}

const noFields = Type.Object({}, { additionalProperties: false })

/** A token that is limited to other tasks than the one in the path is refused. */
export function operation<
  const Url extends string,
  Answer extends TSchema,
  Known extends Parameters = Record<never, never>,
  Body extends TObject = typeof noFields,
>(
  app: FastifyInstance,
  { tokens }: { readonly tokens: TokenLookup },
  method: Method,
  url: Url,
  { id, summary, tag, access, servedByAll = false, ...given }: Operation<Url, Answer, Known, Body>,
): void {
  const names = [...url.matchAll(/:(\w+)/g)].map(([, name]) => name as keyof typeof pathParameters)
  const known = given.query ?? ({} as Known)
  const takesBody = method === 'POST' || method === 'PATCH'
  const type = given.answers[2]
  const bodySchema = given.body ?? (noFields as TObject as Body)
  app.route<{ Params: Record<string, string>; Querystring: Query }>({
    method,
    url,
    config: {
      access,
      servedByAll,
      bodyOptional: method !== 'GET' && (given.body === undefined || given.bodyOptional === true),
    },
    exposeHeadRoute: method === 'GET' && type === undefined,
    schema: {
      operationId: id,
      summary,
      tags: [tag],
      ...(names.length === 0
        ? {}
        : {
            params: Type.Object(Object.fromEntries(names.map((name) => [name, pathParameters[name].schema]))),
          }),
      ...(given.query === undefined ? {} : { querystring: querySchema(known) }),
      ...(takesBody ? { body: bodySchema } : {}),
      response: answers(...given.answers),
    },
    handler: async ({ params, query, body, raw }, reply) => {
      const token = access === 'probe' ? null : tokens.of(raw.headers)
      for (const name of names) {
        pathParameters[name].check(params[name] ?? '')
        if (name === 'taskId') requireTaskLimit(token, params[name] ?? '')
      }
      const answer = await given.answer({
        path: params as Record<NamesIn<Url>, string>,
        query: readQuery(known, query),
        body: takesBody ? checkedBody(bodySchema, body === undefined ? {} : body) : ({} as Static<Body>),
        token,
        raw,
      })
      if (type !== undefined) reply.type(type)
      return reply.send(answer)
    },
  })
}

/** A typo must not have an effect. */
function checkedBody<Body extends TObject>(schema: Body, body: unknown): Static<Body> {
  if (!Check(schema, body)) throw brokenBody(objectFaults(schema, body))
  return body as Static<Body>
}

const brokenBody = (failure: CheckFailure) => brokenContract('the body is invalid', failure)

/** The body breaks a rule that its schema does not have. */
export const brokenFields = (found: readonly Violation[]) => brokenBody(failureOf(found))

export const failureOf = (found: readonly Violation[]): CheckFailure => ({
  ok: false,
  violations: found.slice(0, MAX_LISTED_VIOLATIONS),
  total: found.length,
})

export const brokenField = (pointer: string, detail: string) => brokenFields([{ pointer, detail }])

/** The parameters of paths. The router has decoded them, and they may be any text, also an empty one. */
const pathParameters = {
  taskId: {
    schema: Type.String({
      minLength: 1,
      maxLength: MAX_TASK_ID_LENGTH,
      description: 'The task id; percent-encode slashes and other reserved characters',
      examples: ['orders-2026-03'],
    }),
    check: checkTaskId,
  },
  partition_name: {
    schema: Type.String({
      minLength: 1,
      maxLength: MAX_PARTITION_NAME_LENGTH,
      description: 'The name of the partition; percent-encode reserved characters',
      examples: ['orders-2026-03-0-0'],
    }),
    check: () => undefined,
  },
  table: {
    schema: Type.String({
      ...chosenKeywords.table,
      description: 'The name of the compute table, `<schema>.<table>`; percent-encode reserved characters',
      examples: ['analytics.orders_result'],
    }),
    check: (table: string) => {
      if (table === '')
        throw new RequestProblem('route_unknown', 'the path has no table; the list of tables is at /tables')
      const checked = checkChosen('table', [table])
      if (!checked.ok) throw invalidRequest(`the table in the path is invalid: ${checked.detail}`)
    },
  },
  instanceId: {
    schema: instanceIdSchema,
    check: (instanceId: string) => {
      const checked = checkInstanceId(instanceId)
      if (!checked.ok) throw invalidRequest(`the instance in the path ${checked.detail}`)
    },
  },
  subscriptionId: { schema: Type.String({ examples: ['sub_Zk3vU0f1pQ7cXw2d'] }), check: () => undefined },
  event: { schema: Type.Integer({ minimum: 1, examples: [412] }), check: () => undefined },
} satisfies Record<string, { schema: TSchema; check(given: string): void }>

/** NUL is refused, because stores cannot represent it in a text. */
function checkTaskId(taskId: string): void {
  if (taskId === '')
    throw new RequestProblem('route_unknown', 'the path has no task id; the list of tasks is at /tasks')
  if (taskId.includes('\0') || [...taskId].length > MAX_TASK_ID_LENGTH)
    throw invalidRequest(
      `the task id in the path must have at most ${MAX_TASK_ID_LENGTH} characters and no NUL`,
    )
}

export const unknownTask = (taskId: string) =>
  new RequestProblem('task_unknown', `no task ${JSON.stringify(taskId)} was called back`)

export const unknownInstance = () => new RequestProblem('instance_unknown', 'no instance has this name')
