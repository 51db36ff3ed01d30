import {
  checkInstanceId,
  heldLeaseListSchema,
  instanceAttemptListSchema,
  instanceIdSchema,
  instanceListSchema,
  instanceSorts,
  instanceStates,
  instanceStatusSchema,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import type { DuePosition, InstancePosition } from '../../handoff/views/queries.ts'
import { instanceWithinLimits, isWithinLimit } from '../admission/token-limits.ts'
import { presentHeldLease, presentInstance, presentInstanceAttempt } from '../answers/instance-view.ts'
import { invalidRequest } from '../answers/problems.ts'
import { tableFieldRenamer, timestampOf } from '../answers/wire-values.ts'
import { admittedRequestOf } from '../forwarded-client.ts'
import { nextOf, pageOf, parameter, search, word } from '../requests/parameters.ts'
import type { RouteContext } from '../route-context.ts'
import { operation, unknownInstance } from './operation.ts'

export function instanceRoutes(app: FastifyInstance, context: RouteContext): void {
  const { handOff, tableField, requesterOf } = context
  const renamed = tableFieldRenamer(tableField)
  const requireKnown = async (instanceId: string) => {
    if ((await handOff.instance(instanceId)) === null) throw unknownInstance()
  }

  operation(app, context, 'GET', '/test/instance-status', {
    id: 'instanceStatus',
    summary: 'The status of one instance; without instanceId, of the node that answers',
    tag: 'instances',
    access: 'anyone',
    query: {
      instanceId: parameter(instanceIdSchema, null, (given, refuse) => {
        const checked = checkInstanceId(given)
        return checked.ok ? checked.instanceId : refuse(checked.detail)
      }),
    },
    answers: [instanceStatusSchema, 'The instance'],
    answer: async ({ query: { instanceId }, token, raw }) => {
      const instance = await handOff.instance(
        instanceId ?? admittedRequestOf(raw.headers)?.instanceId ?? null,
      )
      if (instance === null) throw unknownInstance()
      return presentInstance(instanceWithinLimits(token, instance))
    },
  })

  operation(app, context, 'GET', '/instances', {
    id: 'listInstances',
    summary: 'All known instances, or those that match',
    tag: 'instances',
    access: 'overview',
    query: {
      search: search('Only instances whose name contains this text'),
      status: word(instanceStates, { description: 'Only instances with this status' }),
      sort: word(instanceSorts, {
        default: 'name',
        description: 'lastSeenAt: the last seen first; leases: those with most leases first',
      }),
      ...pageOf(asPosition),
    },
    answers: [
      instanceListSchema,
      'One page of instances. A short or empty page is not necessarily the last one',
    ],
    answer: async ({ query: { sort, cursor, ...which } }) => {
      const page = await handOff.instances({ ...which, sort: sort ?? 'name', after: cursor })
      return { instances: page.instances.map(presentInstance), next: nextOf(page.next) }
    },
  })

  operation(app, context, 'GET', '/instances/:instanceId/leases', {
    id: 'listInstanceLeases',
    summary: 'The leases that an instance holds',
    tag: 'instances',
    access: 'view',
    query: pageOf(asLeasePosition),
    answers: [heldLeaseListSchema(tableField), 'One page of leases, the first to expire first'],
    answer: async ({ path: { instanceId }, query: { cursor, limit }, token }) => {
      const { leases, next } = await handOff.views.instanceLeases({ instanceId, after: cursor, limit })
      if (leases.length === 0) await requireKnown(instanceId)
      return {
        leases: leases
          .filter(({ taskId }) => isWithinLimit(token, taskId))
          .map((lease) => renamed(presentHeldLease(lease))),
        next: nextOf(next),
      }
    },
  })

  operation(app, context, 'GET', '/instances/:instanceId/attempts', {
    id: 'listInstanceAttempts',
    summary: 'The last attempts of an instance, since the node that leads took over',
    tag: 'instances',
    access: 'view',
    answers: [instanceAttemptListSchema(tableField), 'At most 50 attempts, the last to end first'],
    answer: async ({ path: { instanceId }, token }) => {
      const { since, attempts } = await handOff.views.instanceAttempts(instanceId)
      if (attempts.length === 0) await requireKnown(instanceId)
      return {
        since: timestampOf(since),
        attempts: attempts
          .filter(({ taskId }) => isWithinLimit(token, taskId))
          .map((attempt) => renamed(presentInstanceAttempt(attempt))),
      }
    },
  })

  for (const verb of ['pause', 'resume'] as const) {
    operation(app, context, 'POST', `/instances/:instanceId/${verb}`, {
      id: `${verb}Instance`,
      summary:
        verb === 'pause'
          ? 'Hand out nothing to an instance; its leases are not affected'
          : 'End the pause of an instance',
      tag: 'instances',
      access: 'fleet',
      answers: [instanceStatusSchema, 'The instance; repeating the request has no further effect'],
      answer: async ({ path: { instanceId }, raw }) => {
        const instance = await handOff.pauseInstance(instanceId, verb === 'pause', requesterOf(raw))
        if (instance === null) throw unknownInstance()
        if (instance === 'node')
          throw invalidRequest(
            `the instance in the path is a node of the service, which pulls nothing; ${verb} a worker`,
          )
        return presentInstance(instance)
      },
    })
  }
}

/** Refuses names that were never issued: PostgreSQL has no NUL in texts. The empty one is the first. */
function asPosition(position: unknown): InstancePosition | undefined {
  const { value, name } = (position ?? {}) as Partial<InstancePosition>
  const isName = name === '' || checkInstanceId(name).ok
  return Number.isSafeInteger(value) && isName ? { value: value as number, name: name as string } : undefined
}

function asLeasePosition(position: unknown): DuePosition | undefined {
  const { dueAt, id } = (position ?? {}) as Partial<DuePosition>
  return Number.isSafeInteger(dueAt) && Number.isSafeInteger(id)
    ? { dueAt: dueAt as number, id: id as number }
    : undefined
}
