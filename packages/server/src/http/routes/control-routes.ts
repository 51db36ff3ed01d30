import type { IncomingHttpHeaders } from 'node:http'
import {
  type CheckFailure,
  type ControlAnswer,
  controlAnswerSchema,
  explainPartitionName,
  levelBarrierRequestSchema,
  MAX_LISTED_VIOLATIONS,
  objectFaults,
  ownerRequestSchema,
  parsePartitionName,
  quoted,
  type RetryRequest,
  retryRequestSchema,
  sealRequestSchema,
  type Violation,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type, { type Static, type TObject, type TSchema } from 'typebox'
import { Check } from 'typebox/schema'
import type { ControlRequest, ControlResult, RetryControl } from '../../handoff/rules/control.ts'
import {
  mayAccessOthers,
  refusedLanes,
  requireOwn,
  requireTaskLimit,
  type Token,
} from '../admission/tokens.ts'
import { brokenContract, RequestProblem } from '../answers/problems.ts'
import { answers } from '../api-document/route-schemas.ts'
import { type TaskParams, taskIdOf, taskParams, unknownTask } from '../requests/parameters.ts'
import type { Service } from '../service.ts'

/**
 * Validates the body of a control request: empty, or an object with known fields only. A typo must not have
 * an effect.
 */
export function controlBody<Schema extends TObject>(schema: Schema, body: unknown): Static<Schema> {
  const value = body === undefined ? {} : body
  if (!Check(schema, value)) throw broken(objectFaults(schema, value))
  return value as Static<Schema>
}

export function brokenControl(found: readonly Violation[]): RequestProblem {
  const violations = found.slice(0, MAX_LISTED_VIOLATIONS)
  return broken({ ok: false, violations, total: found.length })
}

const broken = (failure: CheckFailure) => brokenContract('the body is invalid', failure)

type RequestOf = (taskId: string, body: unknown) => ControlRequest

interface ControlRoute {
  readonly verb: ControlRequest['verb']
  readonly summary: string
  readonly body: TSchema
  /** What a repeated request does, if it has an effect. */
  readonly repeated?: string
  readonly requestOf: RequestOf
}

export const noFields = Type.Object({}, { additionalProperties: false })

const plain = (verb: 'pause' | 'resume' | 'cancel' | 'skip-parked', summary: string): ControlRoute => ({
  verb,
  summary,
  body: noFields,
  requestOf: (taskId, body) => {
    controlBody(noFields, body)
    return { verb, taskId }
  },
})

const controlRouteList: readonly ControlRoute[] = [
  plain('pause', 'Stop handing out partitions of the task; live leases are not affected'),
  plain('resume', 'End a pause'),
  plain('cancel', 'Cancel the task: partitions that are not done are cancelled, and their leases are lost'),
  plain('skip-parked', 'Open the level barrier despite parked partitions'),
  {
    verb: 'retry',
    summary: 'Retry parked partitions: all of them, one level, one reason, or by name',
    body: retryRequestSchema,
    repeated:
      'repeating the request has no further effect, except with `done`: partitions that were finished in between run again',
    requestOf: (taskId, body) => retryControl(taskId, controlBody(retryRequestSchema, body)),
  },
  {
    verb: 'seal',
    summary: 'Seal the task: new partitions are refused from now on',
    body: sealRequestSchema,
    requestOf: (taskId, body) => {
      const { partitions } = controlBody(sealRequestSchema, body)
      return { verb: 'seal', taskId, expectedPartitions: partitions ?? null }
    },
  },
  {
    verb: 'owner',
    summary: 'Give the task to another producer: the name of its token',
    body: ownerRequestSchema,
    requestOf: (taskId, body) => ({
      verb: 'owner',
      taskId,
      name: controlBody(ownerRequestSchema, body).name,
    }),
  },
  {
    verb: 'level-barrier',
    summary: 'Enable or disable the level barrier: each level waits until all lower levels are done',
    body: levelBarrierRequestSchema,
    requestOf: (taskId, body) => ({
      verb: 'level-barrier',
      taskId,
      enabled: controlBody(levelBarrierRequestSchema, body).enabled ?? true,
    }),
  },
]

export function controlRoutes(app: FastifyInstance, { handOff, tokens, requesterOf }: Service): void {
  /**
   * Operators may control all tasks within their limits. Producers, which may only seal, must own the task.
   */
  const requireRight = async (headers: IncomingHttpHeaders, taskId: string): Promise<void> => {
    const token = tokens.of(headers)
    requireTaskLimit(token, taskId)
    if (mayAccessOthers(token, 'operator')) return
    const record = await handOff.views.task(taskId)
    if (record === null) throw unknownTask(taskId)
    requireOwn(token, record.facts)
  }

  for (const { verb, summary, body, repeated, requestOf } of controlRouteList) {
    app.route<{ Params: TaskParams }>({
      method: 'POST',
      url: `/tasks/:taskId/${verb}`,
      config: { access: verb === 'seal' ? 'seal' : 'operator', bodyOptional: verb !== 'owner' },
      schema: {
        operationId: verb.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase()),
        summary,
        tags: ['tasks'],
        params: taskParams,
        body,
        response: answers(
          controlAnswerSchema,
          `Done; ${repeated ?? 'repeating the request has no further effect'}`,
        ),
      },
      handler: async (request, reply) => {
        const taskId = taskIdOf(request.params)
        await requireRight(request.raw.headers, taskId)
        const by = requesterOf(request.raw, request.body)
        const result = await handOff.control(requestOf(taskId, request.body), by)
        return reply.send(answerTo(tokens.of(request.raw.headers), taskId, verb, result))
      },
    })
  }
}

function retryControl(taskId: string, { level, partitions, done, reason }: RetryRequest): RetryControl {
  const beside = { level, partitions, done }
  const other = Object.entries(beside).find(([, value]) => value !== undefined && value !== false)
  if (reason !== undefined && other !== undefined) {
    throw brokenControl([
      {
        pointer: '',
        detail: `send reason or ${other[0]}, not both: a reason stands for all parked partitions of its group`,
      },
    ])
  }
  if (level !== undefined && partitions !== undefined) {
    throw brokenControl([
      {
        pointer: '',
        detail: 'send level or partitions, not both: the name of a partition contains its level',
      },
    ])
  }
  const named = partitions?.map((name) => parsePartitionName(taskId, name)) ?? null
  const misnamed = partitions?.flatMap((name, at) => {
    if (named?.[at] !== undefined) return []
    const detail = `each element of partitions ${explainPartitionName(taskId, name)}, got ${quoted(name)}`
    return [{ pointer: `/partitions/${at}`, detail }]
  })
  if (misnamed !== undefined && misnamed.length > 0) throw brokenControl(misnamed)
  return {
    verb: 'retry',
    taskId,
    level: level ?? null,
    partitions: named?.filter((parsed) => parsed !== undefined) ?? null,
    done: done ?? false,
    ...(reason === undefined ? {} : { reason }),
  }
}

function answerTo(token: Token | null, taskId: string, verb: string, result: ControlResult): ControlAnswer {
  switch (result.kind) {
    case 'applied':
      return { taskId, state: result.state, changed: result.changed }
    case 'task_unknown':
      throw unknownTask(taskId)
    case 'task_cancelled':
      throw new RequestProblem('task_cancelled', `the task is cancelled: ${verb} has no effect`)
    case 'task_sealed':
      throw new RequestProblem('task_sealed', 'the task is sealed and done, and is not reopened')
    case 'task_finished':
      throw new RequestProblem('task_finished', `every partition of the task is done: ${verb} has no effect`)
    case 'task_purged':
      throw new RequestProblem('task_purged', 'retention deleted the partitions of the task')
    case 'too_many_lanes':
      throw refusedLanes(token, result)
    case 'more_are_known':
      throw brokenControl([
        {
          pointer: '/partitions',
          detail: `the task has ${result.known} ${result.known === 1 ? 'partition' : 'partitions'} already; partitions must be at least as large`,
        },
      ])
    case 'backoff_max_shorter':
    case 'limit_without_leases':
    case 'pause_without_leases':
      throw new Error(`only settings are answered ${result.kind}`)
    case 'barrier_without_leases':
      throw brokenControl([
        {
          pointer: '/enabled',
          detail: 'a level barrier requires leases, and this service delivers at most once',
        },
      ])
    case 'level_unknown':
      throw new RequestProblem(
        'partition_unknown',
        'the task does not have this level; nothing was changed',
        {
          extra: { errors: [{ pointer: '/level', detail: 'the task has no partition on that level' }] },
        },
      )
    case 'reason_unknown':
      throw new RequestProblem(
        'partition_unknown',
        'the task has no failures for this reason; nothing was changed',
        {
          extra: {
            errors: [
              { pointer: '/reason', detail: 'reason must be the key of one of the failures of the task' },
            ],
          },
        },
      )
    case 'partitions_unknown': {
      const { positions } = result
      const errors = positions
        .slice(0, MAX_LISTED_VIOLATIONS)
        .map((at) => ({ pointer: `/partitions/${at}`, detail: 'the task does not have this partition' }))
      const omitted = positions.length - errors.length
      throw new RequestProblem(
        'partition_unknown',
        'the task does not have all of these partitions; nothing was changed',
        {
          extra: omitted > 0 ? { errors, errorsOmitted: omitted } : { errors },
        },
      )
    }
  }
}
