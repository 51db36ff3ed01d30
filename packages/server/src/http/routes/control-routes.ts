import {
  type ControlAnswer,
  controlAnswerSchema,
  explainPartitionName,
  levelBarrierRequestSchema,
  listedViolations,
  ownerRequestSchema,
  parsePartitionName,
  quoted,
  type RetryRequest,
  retryRequestSchema,
  sealRequestSchema,
  type Violation,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import type { Static, TObject } from 'typebox'
import type { ControlRequest, ControlResult, RetryControl } from '../../handoff/rules/control.ts'
import { mayAccessOthers, refusedLanes, requireOwn } from '../admission/token-limits.ts'
import type { Token } from '../admission/tokens.ts'
import { RequestProblem } from '../answers/problems.ts'
import type { RouteContext } from '../route-context.ts'
import { brokenField, brokenFields, failureOf, operation, unknownTask } from './operation.ts'

interface ControlRoute<Body extends TObject> {
  readonly verb: ControlRequest['verb']
  readonly summary: string
  readonly body?: Body
  /** What a repeated request does, if it has an effect. */
  readonly repeated?: string
  requestOf(taskId: string, body: Static<Body>): ControlRequest
}

export function controlRoutes(app: FastifyInstance, context: RouteContext): void {
  const { handOff, requesterOf } = context
  /** Operators may control all tasks within their limits. Producers, which may only seal, must own the task. */
  const requireRight = async (token: Token | null, taskId: string): Promise<void> => {
    if (mayAccessOthers(token, 'operator')) return
    const known = await handOff.views.taskSettings(taskId)
    if (known?.calledBack !== true) throw unknownTask(taskId)
    requireOwn(token, known)
  }

  const control = <Body extends TObject>({ verb, summary, body, repeated, requestOf }: ControlRoute<Body>) =>
    operation(app, context, 'POST', `/tasks/:taskId/${verb}`, {
      id: verb.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase()),
      summary,
      tag: 'tasks',
      access: verb === 'seal' ? 'seal' : 'operator',
      ...(body === undefined ? {} : { body }),
      bodyOptional: verb !== 'owner',
      answers: [controlAnswerSchema, `Done; ${repeated ?? 'repeating the request has no further effect'}`],
      answer: async ({ path: { taskId }, body: given, token, raw }) => {
        await requireRight(token, taskId)
        const result = await handOff.control(requestOf(taskId, given), requesterOf(raw, given))
        return answerTo(token, taskId, verb, result)
      },
    })

  const plain = (verb: 'pause' | 'resume' | 'cancel' | 'skip-parked', summary: string) =>
    control({ verb, summary, requestOf: (taskId) => ({ verb, taskId }) })

  plain('pause', 'Stop handing out partitions of the task; live leases are not affected')
  plain('resume', 'End a pause')
  plain('cancel', 'Cancel the task: partitions that are not done are cancelled, and their leases are lost')
  plain('skip-parked', 'Open the level barrier despite parked partitions')
  control({
    verb: 'retry',
    summary: 'Retry parked partitions: all of them, one level, one reason, or by name',
    body: retryRequestSchema,
    repeated:
      'repeating the request has no further effect, except with `done`: partitions that were finished in between run again',
    requestOf: retryControl,
  })
  control({
    verb: 'seal',
    summary: 'Seal the task: new partitions are refused from now on',
    body: sealRequestSchema,
    requestOf: (taskId, { partitions = null }) => ({
      verb: 'seal',
      taskId,
      expectedPartitions: partitions,
    }),
  })
  control({
    verb: 'owner',
    summary: 'Give the task to another producer: the name of its token',
    body: ownerRequestSchema,
    requestOf: (taskId, { name }) => ({ verb: 'owner', taskId, name }),
  })
  control({
    verb: 'level-barrier',
    summary: 'Enable or disable the level barrier: each level waits until all lower levels are done',
    body: levelBarrierRequestSchema,
    requestOf: (taskId, { enabled = true }) => ({ verb: 'level-barrier', taskId, enabled }),
  })
}

function retryControl(taskId: string, { level, partitions, done, reason }: RetryRequest): RetryControl {
  const beside = { level, partitions, done }
  const other = Object.entries(beside).find(([, value]) => value !== undefined && value !== false)
  if (reason !== undefined && other !== undefined) {
    throw brokenField(
      '',
      `send reason or ${other[0]}, not both: a reason stands for all parked partitions of its group`,
    )
  }
  if (level !== undefined && partitions !== undefined) {
    throw brokenField('', 'send level or partitions, not both: the name of a partition contains its level')
  }
  const named = partitions?.map((name) => parsePartitionName(taskId, name)) ?? null
  const misnamed = partitions?.flatMap((name, at) => {
    if (named?.[at] !== undefined) return []
    const detail = `each element of partitions ${explainPartitionName(taskId, name)}, got ${quoted(name)}`
    return [{ pointer: `/partitions/${at}`, detail }]
  })
  if (misnamed !== undefined && misnamed.length > 0) throw brokenFields(misnamed)
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
      throw brokenField(
        '/partitions',
        `the task has ${result.known} ${result.known === 1 ? 'partition' : 'partitions'} already; partitions must be at least as large`,
      )
    case 'backoff_max_shorter':
      throw new Error(`only settings are answered ${result.kind}`)
    case 'needs_leases':
      throw brokenField('/enabled', 'a level barrier requires leases, and this service delivers at most once')
    case 'level_unknown':
      throw unknownParts('does not have this level', [
        { pointer: '/level', detail: 'the task has no partition on that level' },
      ])
    case 'reason_unknown':
      throw unknownParts('has no failures for this reason', [
        { pointer: '/reason', detail: 'reason must be the key of one of the failures of the task' },
      ])
    case 'partitions_unknown':
      throw unknownParts(
        'does not have all of these partitions',
        result.positions.map((at) => ({
          pointer: `/partitions/${at}`,
          detail: 'the task does not have this partition',
        })),
      )
  }
}

const unknownParts = (fault: string, violations: readonly Violation[]) =>
  new RequestProblem('partition_unknown', `the task ${fault}; nothing was changed`, {
    extra: listedViolations(failureOf(violations)),
  })
