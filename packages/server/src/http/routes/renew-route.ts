import { checkRenewal, renewAnswerSchema, renewRequestSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { JSON_TYPE } from '../answers/headers.ts'
import { brokenContract } from '../answers/problems.ts'
import { refusalsJson, secondsOf, timestampOf } from '../answers/views.ts'
import { answers, instanceHeader } from '../api-document/route-schemas.ts'
import { instanceOf } from '../requests/preferences.ts'
import { LEASE_LIMIT_BYTES, type Service } from '../service.ts'

export function renewRoute(app: FastifyInstance, { handOff, tokens, tracing }: Service): void {
  app.route({
    method: 'POST',
    url: '/renew',
    bodyLimit: LEASE_LIMIT_BYTES,
    config: { access: 'worker' },
    schema: {
      operationId: 'renew',
      summary: 'Extend leases by their full length from now',
      tags: ['hand-off'],
      headers: Type.Object(instanceHeader),
      body: renewRequestSchema,
      response: answers(renewAnswerSchema, 'What became of each lease'),
    },
    handler: tracing.handler('POST /renew', async (request, reply) => {
      const checked = checkRenewal(request.body)
      if (!checked.ok) throw brokenContract('the lease ids break the contract', checked)
      const renewals = await handOff.renew(
        checked.leaseIds,
        instanceOf(request.raw.headers),
        tokens.of(request.raw.headers)?.tables ?? null,
      )
      const renewed = []
      const refused = []
      for (const renewal of renewals) {
        const { leaseId } = renewal
        if (renewal.refused !== null) refused.push({ leaseId, code: renewal.refused })
        else {
          const { expiresAt, expiresInMillis } = renewal
          renewed.push({
            leaseId,
            expiresAt: timestampOf(expiresAt),
            expiresInSeconds: secondsOf(expiresInMillis),
          })
        }
      }
      reply.header('content-type', JSON_TYPE)
      return reply.send(`{"renewed":${JSON.stringify(renewed)},"refused":${refusalsJson(refused)}}`)
    }),
  })
}
