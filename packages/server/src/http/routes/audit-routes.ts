import type { IncomingMessage } from 'node:http'
import {
  type AuditList,
  auditListSchema,
  MAX_TASK_ID_LENGTH,
  type TaskFeed,
  taskFeedSchema,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { Requester } from '../../handoff/rules/stamps.ts'
import type { Proxies } from '../admission/proxies.ts'
import { requireOwn, requireTaskLimit, type TokenLookup } from '../admission/tokens.ts'
import { timestampOf } from '../answers/views.ts'
import { answers } from '../api-document/route-schemas.ts'
import {
  cursorOf,
  limitOf,
  pageParameters,
  type Query,
  type TaskParams,
  taskIdOf,
  taskParams,
  textOf,
  unknownTask,
  writeCursor,
} from '../requests/parameters.ts'
import type { Service } from '../service.ts'

/** The longest names of tokens in a tokens file. */
const LONGEST_NAME = 200

const parameters = Type.Object({
  task: Type.Optional(
    Type.String({ maxLength: MAX_TASK_ID_LENGTH, description: 'Only changes of this task, by its full id' }),
  ),
  name: Type.Optional(
    Type.String({ maxLength: LONGEST_NAME, description: 'Only changes by this token or user' }),
  ),
  ...pageParameters,
})

export function auditRoutes(app: FastifyInstance, { handOff, tokens }: Service): void {
  app.route<{ Querystring: Query }>({
    method: 'GET',
    url: '/audit',
    config: { access: 'audit' },
    schema: {
      operationId: 'listAudit',
      summary: 'Changes of tasks and of the service, and who requested them, newest first',
      tags: ['health'],
      querystring: parameters,
      response: answers(auditListSchema, 'One page of changes'),
    },
    handler: async ({ query }, reply) => {
      const page = await handOff.views.audited({
        taskId: textOf(query, 'task', MAX_TASK_ID_LENGTH),
        name: textOf(query, 'name', LONGEST_NAME),
        before: cursorOf(query, asId) ?? Number.MAX_SAFE_INTEGER,
        limit: limitOf(query),
      })
      const list: AuditList = {
        entries: page.records.map(({ id: _id, at, ...record }) => ({ at: timestampOf(at), ...record })),
        next: page.next === null ? null : writeCursor(page.next),
      }
      return reply.send(list)
    },
  })

  app.route<{ Params: TaskParams }>({
    method: 'GET',
    url: '/tasks/:taskId/feed',
    config: { access: 'task' },
    schema: {
      operationId: 'viewFeed',
      summary: 'What happened to a task, newest first',
      tags: ['tasks'],
      params: taskParams,
      response: answers(taskFeedSchema, 'The latest events of the task'),
    },
    handler: async ({ params, raw }, reply) => {
      const taskId = taskIdOf(params)
      const token = tokens.of(raw.headers)
      requireTaskLimit(token, taskId)
      const found = await handOff.views.feed(taskId)
      if (found === null) throw unknownTask(taskId)
      requireOwn(token, found.task)
      const feed: TaskFeed = {
        taskId,
        entries: found.entries.map(({ at, ...entry }) => ({ at: timestampOf(at), ...entry })),
        complete: found.isComplete,
      }
      return reply.send(feed)
    },
  })
}

const asId = (position: unknown): number | undefined =>
  Number.isSafeInteger(position) ? (position as number) : undefined

/** Finds out who sent a request that changes something. `body` must not contain secrets. */
export const requesters =
  (tokens: TokenLookup, proxies: Proxies): Service['requesterOf'] =>
  ({ socket, headers }: IncomingMessage, body?: unknown): Requester => ({
    name: tokens.nameOf(headers),
    address: proxies.addressOf(socket, headers),
    body: typeof body === 'object' && body !== null ? shortened(body) : null,
  })

const LONGEST_LIST = 10

/** Keeps the first elements of a long list, and their number. The other fields are short. */
function shortened(body: object): Requester['body'] {
  const kept: Record<string, unknown> = {}
  for (const [field, value] of Object.entries(body)) {
    kept[field] = Array.isArray(value) ? value.slice(0, LONGEST_LIST) : value
    if (Array.isArray(value) && value.length > LONGEST_LIST)
      kept[`${field}Omitted`] = value.length - LONGEST_LIST
  }
  return kept
}
