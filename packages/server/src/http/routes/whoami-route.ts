import { type Whoami, whoamiSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import { roles } from '../admission/tokens.ts'
import { answers } from '../api-document/route-schemas.ts'
import type { Service } from '../service.ts'

/** Tells a page or a person with which name and roles the service sees them. */
export function whoamiRoute(app: FastifyInstance, { tokens }: Service): void {
  app.route({
    method: 'GET',
    url: '/whoami',
    config: { access: 'anyone' },
    schema: {
      operationId: 'whoami',
      summary: 'The name and the roles of the sender',
      tags: ['health'],
      response: answers(whoamiSchema, 'The sender'),
    },
    handler: async ({ raw }, reply) => {
      const token = tokens.of(raw.headers)
      const answer: Whoami = {
        name: token?.name ?? null,
        roles: roles.filter((role) => token === null || token.roles.has(role)),
        tasks: token?.tasks == null ? null : [...token.tasks],
      }
      return reply.send(answer)
    },
  })
}
