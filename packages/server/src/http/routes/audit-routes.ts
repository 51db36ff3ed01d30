import type { IncomingMessage } from 'node:http'
import { auditListSchema, MAX_TASK_ID_LENGTH, nodeAuditSchema, taskFeedSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import type { Requester } from '../../handoff/rules/stamps.ts'
import type { Proxies } from '../admission/proxies.ts'
import { requireView, type TokenLookup } from '../admission/tokens.ts'
import { timestampOf } from '../answers/wire-values.ts'
import type { AuditLog } from '../observability/audit.ts'
import { nextOf, pageOf, safeInteger, text } from '../requests/parameters.ts'
import type { Service } from '../service.ts'
import { operation, unknownTask } from './operation.ts'

/** The longest names of tokens in a tokens file. */
const LONGEST_NAME = 200

export function auditRoutes(app: FastifyInstance, service: Service, nodeAudit: AuditLog): void {
  const { views } = service.handOff
  operation(app, service, 'GET', '/audit', {
    id: 'listAudit',
    summary: 'Changes of tasks and of the service, and who requested them, newest first',
    tag: 'health',
    access: 'audit',
    query: {
      task: text({
        maxLength: MAX_TASK_ID_LENGTH,
        description: 'Only changes of this task, by its full id',
      }),
      name: text({ maxLength: LONGEST_NAME, description: 'Only changes by this token or user' }),
      ...pageOf(safeInteger),
    },
    answers: [auditListSchema, 'One page of changes'],
    answer: async ({ query: { task, name, cursor, limit } }) => {
      const before = cursor ?? Number.MAX_SAFE_INTEGER
      const { records, next } = await views.audited({ taskId: task, name, before, limit })
      return {
        entries: records.map(({ id: _id, at, ...record }) => ({ at: timestampOf(at), ...record })),
        next: nextOf(next),
      }
    },
  })

  operation(app, service, 'GET', '/audit/node', {
    id: 'listNodeAudit',
    summary: 'Refused tokens and reloaded files of this node since it started, newest first',
    tag: 'health',
    access: 'audit',
    servedByAll: true,
    query: pageOf(safeInteger),
    answers: [nodeAuditSchema, 'One page of entries'],
    answer: ({ query: { cursor, limit } }) => {
      const { entries, next } = nodeAudit.page(cursor, limit)
      return {
        entries: entries.map(({ number: _number, at, ...entry }) => ({ at: timestampOf(at), ...entry })),
        next: nextOf(next),
      }
    },
  })

  operation(app, service, 'GET', '/tasks/:taskId/feed', {
    id: 'viewFeed',
    summary: 'What happened to a task, newest first',
    tag: 'tasks',
    access: 'task',
    answers: [taskFeedSchema, 'The latest events of the task'],
    answer: async ({ path: { taskId }, token }) => {
      const found = await views.feed(taskId)
      if (found === null) throw unknownTask(taskId)
      requireView(token, found.task)
      const entries = found.entries.map(({ at, ...entry }) => ({ at: timestampOf(at), ...entry }))
      return { taskId, entries, complete: found.isComplete }
    },
  })
}

/** Finds out who sent a request that changes something. `body` must not contain secrets. */
export const requesters =
  (tokens: TokenLookup, proxies: Proxies): Service['requesterOf'] =>
  ({ socket, headers }: IncomingMessage, body: object = {}): Requester => ({
    name: tokens.nameOf(headers),
    address: proxies.addressOf(socket, headers),
    body: Object.keys(body).length === 0 ? null : shortened(body),
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
