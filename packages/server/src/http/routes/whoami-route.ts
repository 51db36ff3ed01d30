import { type Whoami, whoamiSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
<<<<<<< HEAD
import { userOf } from '../admission/proxy-users.ts'
import { answers } from '../api-document/route-schemas.ts'
import type { Service } from '../service.ts'

=======
import { roles } from '../admission/tokens.ts'
import { answers } from '../api-document/route-schemas.ts'
import type { Service } from '../service.ts'

/** Tells a page or a person with which name and roles the service sees them. */
>>>>>>> main
export function whoamiRoute(app: FastifyInstance, { tokens }: Service): void {
  app.route({
    method: 'GET',
    url: '/whoami',
<<<<<<< HEAD
    config: { access: 'anyone', servedByAll: true },
    schema: {
      operationId: 'whoami',
      summary: 'The name, the roles and the limits of the sender of this request',
      tags: ['health'],
      response: answers(whoamiSchema, 'The sender'),
    },
    handler: async ({ raw: { headers } }, reply) => {
      const token = tokens.of(headers)
      const answer: Whoami =
        token === null
          ? { name: null, signedInBy: null, roles: null, tasks: null }
          : {
              name: token.name,
              signedInBy: userOf(headers) === undefined ? 'token' : 'proxy',
              roles: [...token.roles],
              tasks: token.tasks === null ? null : [...token.tasks],
            }
=======
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
>>>>>>> main
      return reply.send(answer)
    },
  })
}
