import { type Whoami, whoamiSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import { userOf } from '../admission/proxy-users.ts'
import { answers } from '../api-document/route-schemas.ts'
import type { Service } from '../service.ts'

export function whoamiRoute(app: FastifyInstance, { tokens }: Service): void {
  app.route({
    method: 'GET',
    url: '/whoami',
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
      return reply.send(answer)
    },
  })
}
