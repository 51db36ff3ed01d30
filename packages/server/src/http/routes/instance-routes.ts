import {
  checkInstanceId,
  type InstanceList,
  instanceIdSchema,
  instanceListSchema,
  instanceStatusSchema,
  type ReleaseAnswer,
  releaseAnswerSchema,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { instanceWithinLimits } from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import { viewInstance } from '../answers/views.ts'
import { answers } from '../api-document/route-schemas.ts'
import { originOf } from '../origins.ts'
import { cursorOf, limitOf, once, pageParameters, type Query, writeCursor } from '../requests/parameters.ts'
import type { Service } from '../service.ts'
import { controlBody, noFields } from './control-routes.ts'

export function instanceRoutes(app: FastifyInstance, { handOff, tokens, requesterOf }: Service): void {
  app.route<{ Querystring: Query }>({
    method: 'GET',
    url: '/test/instance-status',
    config: { access: 'anyone' },
    schema: {
      operationId: 'instanceStatus',
      summary: 'The status of one instance; without instanceId, of the node that answers',
      tags: ['instances'],
      querystring: Type.Object({
        instanceId: Type.Optional(instanceIdSchema),
      }),
      response: answers(instanceStatusSchema, 'The instance'),
    },
    handler: async (request, reply) => {
      const asked = instanceIdOf(request.query) ?? originOf(request.raw.headers)?.instanceId ?? null
      const instance = await handOff.instance(asked)
      if (instance === null) throw unknownInstance()
      return reply.send(viewInstance(instanceWithinLimits(tokens.of(request.raw.headers), instance)))
    },
  })

  app.route<{ Querystring: Query }>({
    method: 'GET',
    url: '/instances',
    config: { access: 'overview' },
    schema: {
      operationId: 'listInstances',
      summary: 'All known instances, by name',
      tags: ['instances'],
      querystring: Type.Object(pageParameters),
      response: answers(instanceListSchema, 'One page of instances'),
    },
    handler: async ({ query }, reply) => {
      const page = await handOff.instances({ after: cursorOf(query, asName), limit: limitOf(query) })
      const list: InstanceList = {
        instances: page.instances.map(viewInstance),
        next: page.next === null ? null : writeCursor(page.next),
      }
      return reply.send(list)
    },
  })

  app.route<{ Params: InstanceParams }>({
    method: 'POST',
    url: '/instances/:instanceId/release',
    config: { access: 'fleet', bodyOptional: true },
    schema: {
      operationId: 'releaseInstance',
      summary: 'Revoke all leases of an instance: their partitions are ready at once',
      tags: ['instances'],
      params: Type.Object({ instanceId: instanceIdSchema }),
      body: noFields,
      response: answers(
        releaseAnswerSchema,
        'Done; repeating the request revokes leases that were handed out since',
      ),
    },
    handler: async ({ params, body, raw }, reply) => {
      const instanceId = instanceInPath(params)
      controlBody(noFields, body)
      const released = await handOff.release(instanceId, requesterOf(raw))
      if (released === null) throw unknownInstance()
      const answer: ReleaseAnswer = { instanceId, ...released }
      return reply.send(answer)
    },
  })
}

interface InstanceParams {
  readonly instanceId: string
}

const unknownInstance = () => new RequestProblem('instance_unknown', 'no instance has this name')

/** Validates the path segment, which may decode to any text. */
function instanceInPath({ instanceId }: InstanceParams): string {
  const checked = checkInstanceId(instanceId)
  if (checked.ok) return checked.instanceId
  throw new RequestProblem('parameter_invalid', `the instance in the path ${checked.detail}`)
}

/**
 * Refuses cursors that are not valid names. They were never issued, and a store may not be able to represent
 * them: PostgreSQL has no NUL in texts.
 */
function asName(position: unknown): string | undefined {
  const checked = checkInstanceId(position)
  return checked.ok ? checked.instanceId : undefined
}

function instanceIdOf(query: Query): string | null {
  const given = once(query, 'instanceId')
  if (given === undefined) return null
  const checked = checkInstanceId(given)
  if (checked.ok) return checked.instanceId
  throw new RequestProblem('parameter_invalid', `the query parameter instanceId ${checked.detail}`)
}
