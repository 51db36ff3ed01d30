import { whoamiSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import { roles } from '../admission/tokens.ts'
import type { RouteContext } from '../route-context.ts'
import { operation } from './operation.ts'

/** Tells a page or a person with which name and roles the service sees them. */
export function whoamiRoute(app: FastifyInstance, context: RouteContext): void {
  operation(app, context, 'GET', '/whoami', {
    id: 'whoami',
    summary: 'The name and the roles of the sender',
    tag: 'health',
    access: 'anyone',
    answers: [whoamiSchema, 'The sender'],
    answer: ({ token }) => ({
      name: token?.name ?? null,
      roles: roles.filter((role) => token === null || token.roles.has(role)),
      tasks: token?.tasks == null ? null : [...token.tasks],
    }),
  })
}
