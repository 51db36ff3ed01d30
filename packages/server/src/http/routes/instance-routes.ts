import {
  checkInstanceId,
  type InstanceList,
  instanceIdSchema,
  instanceListSchema,
  instanceStatusSchema,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { withinLimits } from '../admission/reach.ts'
import { viewInstance } from '../answers/instance-view.ts'
import { RequestProblem } from '../answers/problems.ts'
import { answers } from '../api-document/documented.ts'
import type { Service } from '../service.ts'
import { cursorOf, limitOf, once, pageParameters, type Query, writeCursor } from './paging.ts'

export function instanceRoutes(app: FastifyInstance, { handOff, callers }: Service): void {
  app.route<{ Querystring: Query }>({
    method: 'GET',
    url: '/test/instance-status',
    config: { access: 'anyone' },
    schema: {
      operationId: 'instanceStatus',
      summary: 'What is known about one instance; about the node that answers when none is named',
      tags: ['instances'],
      querystring: Type.Object({
        instanceId: Type.Optional(instanceIdSchema),
      }),
      response: answers(instanceStatusSchema, 'The instance'),
    },
    handler: async (request, reply) => {
      const asked = instanceIdOf(request.query)
      const instance = await handOff.instance(asked)
      if (instance === null) {
        throw new RequestProblem('instance_unknown', 'no instance of that name is known here')
      }
      return reply.send(viewInstance(withinLimits(callers.of(request.raw.headers), instance)))
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
}

/** Whatever is no name was never given out, and a store may have no form for it: NUL has none in PostgreSQL. */
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
