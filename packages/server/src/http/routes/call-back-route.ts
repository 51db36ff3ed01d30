import { type CallBack, type Conflict, callBackAnswerSchema, callBackRequestSchema } from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { KnownConflict } from '../../handoff/store.ts'
import type { BoundsMet } from '../admission/bounds.ts'
import { requireCallBackLimits } from '../admission/reach.ts'
import { nameOf } from '../answers/partition-view.ts'
import { brokenContract, RequestProblem } from '../answers/problems.ts'
import { answers, producerHeader } from '../api-document/documented.ts'
import { CallBackReader } from '../large-call-backs/call-back-reader.ts'
import { whileHeld } from '../requests/held-body.ts'
import { callerOf } from '../requests/request-headers.ts'
import { JSON_TYPE, type Service } from '../service.ts'
import { sealHeader, sealOf } from './seal-header.ts'

export function callBackRoute(app: FastifyInstance, service: Service, met: BoundsMet): void {
  const { handOff, tableField, unknownFields, callBackLimitBytes, callBackLevels, callers } = service
  const reader = new CallBackReader({ tableField, unknownFields, maxLevels: callBackLevels })
  app.addHook('onClose', () => reader.close())
  app.route({
    method: 'POST',
    url: '/call-back',
    bodyLimit: callBackLimitBytes,
    config: { access: 'producer', readsLargeBodies: true },
    schema: {
      operationId: 'callBack',
      summary: 'Describe partitions of a task, to be handed out',
      tags: ['hand-off'],
      headers: Type.Object({ ...producerHeader, ...sealHeader }),
      body: callBackRequestSchema(tableField),
      response: answers(callBackAnswerSchema, 'Everything in the array is durable'),
    },
    handler: async (request, reply) => {
      const { headers, socket } = request.raw
      const seal = sealOf(headers)
      const { callBack, result } = await whileHeld(request.raw, async () => {
        const checked = await reader.read(request.body)
        if (!checked.ok) {
          if (checked.tooManyLevels) met.met('call-back-levels', socket.remoteAddress)
          throw brokenContract('the array breaks the contract', checked)
        }
        const { callBack } = checked
        const caller = callers.of(headers)
        requireCallBackLimits(caller, callBack)
        const owner = caller?.name ?? null
        return { callBack, result: await handOff.callBack(callBack, callerOf(headers), { owner, seal }) }
      })
      switch (result.kind) {
        case 'stored': {
          const { accepted, duplicates } = result
          reply.header('content-type', JSON_TYPE)
          return reply.send(JSON.stringify({ taskId: callBack.taskId, accepted, duplicates }))
        }
        case 'conflict':
          throw conflictProblem(callBack, result.conflicts, result.total, tableField)
        case 'task_cancelled':
          throw new RequestProblem('task_cancelled', 'the task is cancelled and takes no new partitions')
        case 'task_sealed':
          throw new RequestProblem(
            'task_sealed',
            'the task is sealed, and the array holds partitions that are new',
          )
        case 'more_are_known':
          throw new RequestProblem(
            'parameter_invalid',
            `Baton-Seal expects fewer partitions than the ${result.known} that the task would have; nothing was stored`,
          )
        case 'not_own':
          throw new RequestProblem(
            'token_limited',
            'the array holds nothing new, and a producer may seal only tasks that it called back; nothing was changed',
          )
        case 'record_total_too_large':
          throw new RequestProblem(
            'record_total_too_large',
            'with this array the records of the task would add up to more than 2^53 - 1',
          )
      }
    },
  })
}

function conflictProblem(
  callBack: CallBack,
  found: readonly KnownConflict[],
  total: number,
  tableField: string,
): RequestProblem {
  const conflicts = found.map((conflict) => describe(callBack, conflict, tableField))
  const omitted = total - conflicts.length
  const number = total === 1 ? '1 partition is' : `${total} partitions are`
  return new RequestProblem(
    'partition_conflict',
    `${number} already known with other content; nothing of the array was stored`,
    { extra: omitted > 0 ? { conflicts, conflictsOmitted: omitted } : { conflicts } },
  )
}

function describe(callBack: CallBack, { position, known }: KnownConflict, tableField: string): Conflict {
  const sent = callBack.partitions[position]
  if (sent === undefined) throw new Error(`a conflict at ${position}, beyond the array`)
  const differing: [string, string | number, string | number][] = [
    ['partition_name', nameOf(callBack.taskId, sent), nameOf(callBack.taskId, known)],
    ['record_count', sent.recordCount, known.recordCount],
    [tableField, sent.computeTableName, known.computeTableName],
  ]
  const detail = differing
    .filter(([, here, before]) => here !== before)
    .map(([field, here, before]) => `${field} is ${here} here and ${before} in what was accepted before`)
    .join('; ')
  return { pointer: `/${position}`, partition_name: nameOf(callBack.taskId, sent), detail }
}
