import { type AuditList, auditListSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { timestampOf } from '../answers/views.ts'
import { answers } from '../api-document/documented.ts'
import { cursorOf, limitOf, pageParameters, type Query, writeCursor } from '../routes/paging.ts'
import type { AuditLog } from './audit-log.ts'

export function auditRoute(app: FastifyInstance, audit: AuditLog): void {
  app.route<{ Querystring: Query }>({
    method: 'GET',
    url: '/audit',
    config: { access: 'audit' },
    schema: {
      operationId: 'listAudit',
      summary:
        'Who gave which order, and which tokens were refused: on this node, since it started, newest first',
      tags: ['health'],
      querystring: Type.Object(pageParameters),
      response: answers(auditListSchema, 'One page of entries'),
    },
    handler: async ({ query }, reply) => {
      const page = audit.page(cursorOf(query, asNumber), limitOf(query))
      const list: AuditList = {
        entries: page.entries.map(({ number: _number, at, ...entry }) => ({ at: timestampOf(at), ...entry })),
        next: page.next === null ? null : writeCursor(page.next),
      }
      return reply.send(list)
    },
  })
}

function asNumber(position: unknown): number | undefined {
  return Number.isSafeInteger(position) ? (position as number) : undefined
}
