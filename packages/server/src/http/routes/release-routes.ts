import {
  explainPartitionName,
  parsePartitionName,
  partitionReleaseAnswerSchema,
  quoted,
  releaseAnswerSchema,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import { invalidRequest, RequestProblem } from '../answers/problems.ts'
import type { RouteContext } from '../route-context.ts'
import { operation, unknownInstance, unknownTask } from './operation.ts'

const REPEATED = 'Done; repeating the request revokes leases that were handed out since'

/** An operator takes leases away. */
export function releaseRoutes(app: FastifyInstance, context: RouteContext): void {
  const { handOff, requesterOf } = context
  operation(app, context, 'POST', '/tasks/:taskId/partitions/:partition_name/release', {
    id: 'releasePartition',
    summary: 'Revoke the lease of a partition: it is ready at once',
    tag: 'tasks',
    access: 'operator',
    answers: [partitionReleaseAnswerSchema, REPEATED],
    answer: async ({ path: { taskId, partition_name }, raw }) => {
      const named = parsePartitionName(taskId, partition_name)
      if (named === undefined)
        throw invalidRequest(
          `the partition in the path ${explainPartitionName(taskId, partition_name)}, got ${quoted(partition_name)}`,
        )
      const { level, index } = named
      const result = await handOff.revokeLease({ taskId, level, index, by: requesterOf(raw) })
      if (!('unknown' in result))
        return { taskId, partition_name, released: result.revoked, parked: result.parked }
      if (result.unknown === 'task') throw unknownTask(taskId)
      throw new RequestProblem('partition_unknown', 'the task does not have this partition')
    },
  })

  operation(app, context, 'POST', '/instances/:instanceId/release', {
    id: 'releaseInstance',
    summary: 'Revoke all leases of an instance: their partitions are ready at once',
    tag: 'instances',
    access: 'fleet',
    answers: [releaseAnswerSchema, REPEATED],
    answer: async ({ path: { instanceId }, raw }) => {
      const result = await handOff.revokeLeases(instanceId, requesterOf(raw))
      if (result === null) throw unknownInstance()
      return { instanceId, released: result.revoked, parked: result.parked }
    },
  })
}
