import {
  checkInstanceId,
  heldLeaseListSchema,
  type InstanceList,
  instanceAttemptListSchema,
  instanceIdSchema,
  instanceListSchema,
  instanceSorts,
  instanceStates,
  instanceStatusSchema,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { InstancePosition, LeasePosition } from '../../handoff/views/queries.ts'
import { instanceWithinLimits, isWithinLimit } from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import {
  tableFieldRenamer,
  timestampOf,
  viewHeldLease,
  viewInstance,
  viewInstanceAttempt,
} from '../answers/views.ts'
import { answers } from '../api-document/route-schemas.ts'
import { originOf } from '../origins.ts'
import {
  cursorOf,
  limitOf,
  once,
  pageParameters,
  type Query,
  wordOf,
  writeCursor,
} from '../requests/parameters.ts'
import type { Service } from '../service.ts'
import { controlBody, noFields } from './control-routes.ts'

const word = (words: readonly string[], options: object) =>
  Type.Optional(Type.Unsafe<string>({ type: 'string', enum: [...words], ...options }))

export function instanceRoutes(
  app: FastifyInstance,
  { handOff, tokens, tableField, requesterOf }: Service,
): void {
  const renamed = tableFieldRenamer(tableField)
  const requireKnown = async (instanceId: string) => {
    if ((await handOff.instance(instanceId)) === null) throw unknownInstance()
  }

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
      summary: 'All known instances, or those that match',
      tags: ['instances'],
      querystring: Type.Object({
        search: Type.Optional(Type.String({ description: 'Only instances whose name contains this text' })),
        status: word(instanceStates, { description: 'Only instances with this status' }),
        sort: word(instanceSorts, {
          default: 'name',
          description: 'lastSeenAt: the last seen first; leases: those with most leases first',
        }),
        ...pageParameters,
      }),
      response: answers(
        instanceListSchema,
        'One page of instances. A short or empty page is not necessarily the last one',
      ),
    },
    handler: async ({ query }, reply) => {
      const page = await handOff.instances({
        search: once(query, 'search') ?? null,
        status: wordOf(query, 'status', instanceStates),
        sort: wordOf(query, 'sort', instanceSorts) ?? 'name',
        after: cursorOf(query, asPosition),
        limit: limitOf(query),
      })
      const list: InstanceList = {
        instances: page.instances.map(viewInstance),
        next: page.next === null ? null : writeCursor(page.next),
      }
      return reply.send(list)
    },
  })

  app.route<{ Params: InstanceParams; Querystring: Query }>({
    method: 'GET',
    url: '/instances/:instanceId/leases',
    config: { access: 'view' },
    schema: {
      operationId: 'listInstanceLeases',
      summary: 'The leases that an instance holds',
      tags: ['instances'],
      params: instanceParams,
      querystring: Type.Object(pageParameters),
      response: answers(heldLeaseListSchema(tableField), 'One page of leases, the first to expire first'),
    },
    handler: async ({ params, query, raw }, reply) => {
      const instanceId = instanceInPath(params)
      const token = tokens.of(raw.headers)
      const page = await handOff.views.instanceLeases({
        instanceId,
        after: cursorOf(query, asLeasePosition),
        limit: limitOf(query),
      })
      if (page.leases.length === 0) await requireKnown(instanceId)
      return reply.send({
        leases: page.leases
          .filter(({ taskId }) => isWithinLimit(token, taskId))
          .map((lease) => renamed(viewHeldLease(lease))),
        next: page.next === null ? null : writeCursor(page.next),
      })
    },
  })

  app.route<{ Params: InstanceParams }>({
    method: 'GET',
    url: '/instances/:instanceId/attempts',
    config: { access: 'view' },
    schema: {
      operationId: 'listInstanceAttempts',
      summary: 'The last attempts of an instance, since the node that leads took over',
      tags: ['instances'],
      params: instanceParams,
      response: answers(instanceAttemptListSchema(tableField), 'At most 50 attempts, the last to end first'),
    },
    handler: async ({ params, raw }, reply) => {
      const instanceId = instanceInPath(params)
      const token = tokens.of(raw.headers)
      const { since, attempts } = await handOff.views.instanceAttempts(instanceId)
      if (attempts.length === 0) await requireKnown(instanceId)
      return reply.send({
        since: timestampOf(since),
        attempts: attempts
          .filter(({ taskId }) => isWithinLimit(token, taskId))
          .map((attempt) => renamed(viewInstanceAttempt(attempt))),
      })
    },
  })

  for (const verb of ['pause', 'resume'] as const) {
    app.route<{ Params: InstanceParams }>({
      method: 'POST',
      url: `/instances/:instanceId/${verb}`,
      config: { access: 'fleet', bodyOptional: true },
      schema: {
        operationId: `${verb}Instance`,
        summary:
          verb === 'pause'
            ? 'Hand out nothing to an instance; its leases are not affected'
            : 'End the pause of an instance',
        tags: ['instances'],
        params: instanceParams,
        body: noFields,
        response: answers(instanceStatusSchema, 'The instance; repeating the request has no further effect'),
      },
      handler: async ({ params, body, raw }, reply) => {
        const instanceId = instanceInPath(params)
        controlBody(noFields, body)
        const instance = await handOff.pauseInstance(instanceId, verb === 'pause', requesterOf(raw))
        if (instance === null) throw unknownInstance()
        if (instance === 'node')
          throw new RequestProblem(
            'parameter_invalid',
            `the instance in the path is a node of the service, which pulls nothing; ${verb} a worker`,
          )
        return reply.send(viewInstance(instance))
      },
    })
  }
}

export interface InstanceParams {
  readonly instanceId: string
}

const instanceParams = Type.Object({ instanceId: instanceIdSchema })

export const unknownInstance = () => new RequestProblem('instance_unknown', 'no instance has this name')

/** Validates the path segment, which may decode to any text. */
export function instanceInPath({ instanceId }: InstanceParams): string {
  const checked = checkInstanceId(instanceId)
  if (checked.ok) return checked.instanceId
  throw new RequestProblem('parameter_invalid', `the instance in the path ${checked.detail}`)
}

/**
 * Refuses cursors that are not valid names. They were never issued, and a store may not be able to represent
 * them: PostgreSQL has no NUL in texts. The empty name comes before all others.
 */
function asPosition(position: unknown): InstancePosition | undefined {
  const { value, name } = (position ?? {}) as Partial<InstancePosition>
  const isName = name === '' || checkInstanceId(name).ok
  return Number.isSafeInteger(value) && isName ? { value: value as number, name: name as string } : undefined
}

function asLeasePosition(position: unknown): LeasePosition | undefined {
  const { dueAt, id } = (position ?? {}) as Partial<LeasePosition>
  return Number.isSafeInteger(dueAt) && Number.isSafeInteger(id)
    ? { dueAt: dueAt as number, id: id as number }
    : undefined
}

function instanceIdOf(query: Query): string | null {
  const given = once(query, 'instanceId')
  if (given === undefined) return null
  const checked = checkInstanceId(given)
  if (checked.ok) return checked.instanceId
  throw new RequestProblem('parameter_invalid', `the query parameter instanceId ${checked.detail}`)
}
