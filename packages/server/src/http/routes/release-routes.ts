import {
  explainPartitionName,
  instanceIdSchema,
  MAX_PARTITION_NAME_LENGTH,
  type PartitionReleaseAnswer,
  parsePartitionName,
  partitionReleaseAnswerSchema,
  quoted,
  type ReleaseAnswer,
  releaseAnswerSchema,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { requireTaskLimit } from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import { answers } from '../api-document/route-schemas.ts'
import { type TaskParams, taskIdOf, taskParams, unknownTask } from '../requests/parameters.ts'
import type { Service } from '../service.ts'
import { controlBody, noFields } from './control-routes.ts'
import { type InstanceParams, instanceInPath, unknownInstance } from './instance-routes.ts'

const REPEATED = 'Done; repeating the request revokes leases that were handed out since'

/** An operator takes leases away. */
export function releaseRoutes(app: FastifyInstance, { handOff, tokens, requesterOf }: Service): void {
  app.route<{ Params: TaskParams & { readonly partition_name: string } }>({
    method: 'POST',
    url: '/tasks/:taskId/partitions/:partition_name/release',
    config: { access: 'operator', bodyOptional: true },
    schema: {
      operationId: 'releasePartition',
      summary: 'Revoke the lease of a partition: it is ready at once',
      tags: ['tasks'],
      params: Type.Object({
        ...taskParams.properties,
        partition_name: Type.String({
          minLength: 1,
          maxLength: MAX_PARTITION_NAME_LENGTH,
          description: 'The name of the partition; percent-encode reserved characters',
          examples: ['orders-2026-03-0-0'],
        }),
      }),
      body: noFields,
      response: answers(partitionReleaseAnswerSchema, REPEATED),
    },
    handler: async ({ params, body, raw }, reply) => {
      const taskId = taskIdOf(params)
      const { partition_name } = params
      requireTaskLimit(tokens.of(raw.headers), taskId)
      controlBody(noFields, body)
      const named = parsePartitionName(taskId, partition_name)
      if (named === undefined)
        throw new RequestProblem(
          'parameter_invalid',
          `the partition in the path ${explainPartitionName(taskId, partition_name)}, got ${quoted(partition_name)}`,
        )
      const released = await handOff.releasePartition({
        taskId,
        level: named.level,
        index: named.index,
        by: requesterOf(raw),
      })
      if (!('unknown' in released)) {
        const answer: PartitionReleaseAnswer = { taskId, partition_name, ...released }
        return reply.send(answer)
      }
      if (released.unknown === 'task') throw unknownTask(taskId)
      throw new RequestProblem('partition_unknown', 'the task does not have this partition')
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
      response: answers(releaseAnswerSchema, REPEATED),
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
