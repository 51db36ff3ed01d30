import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import {
  type CallBack,
  type CallBackCheck,
  CallBackChecker,
  type CallBackOptions,
  type CalledBackPartition,
  type Conflict,
  callBackAnswerSchema,
  callBackRequestSchema,
  checkCallBack,
  readTaskSettings,
  settingWord,
  type TaskSettingsRequest,
} from '@baton/protocol'
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import type { HandOff } from '../../handoff/hand-off.ts'
import { type ContentField, differingFields } from '../../handoff/rules/call-back-rules.ts'
import { settingThatNeedsLeases, type TaskSettingsChange } from '../../handoff/rules/policy.ts'
import type { BatchedCallBack, KnownConflict } from '../../handoff/store.ts'
import {
  ofAnother,
  ownerLimits,
  refusedLanes,
  refusedOpenWork,
  requireCallBackLimits,
  requireWeightLimit,
  sharesTasks,
} from '../admission/token-limits.ts'
import { brokenContract, invalidRequest, RequestProblem } from '../answers/problems.ts'
import { settingsChange } from '../answers/task-view.ts'
import { nameOf } from '../answers/wire-values.ts'
import { answers, producerHeader, settingsHeader } from '../api-document/route-schemas.ts'
import { whileHeld } from '../bodies/arriving-body.ts'
import { JsonArrayText } from '../bodies/json-array.ts'
import type { ReachedLimits } from '../limits/limits.ts'
import { instanceOf } from '../requests/preferences.ts'
import type { TimeSlicer } from '../requests/time-slicer.ts'
import type { RouteContext } from '../route-context.ts'

const SEAL_HEADER = 'baton-seal'

const sealHeader = {
  [SEAL_HEADER]: Type.Optional(
    Type.String({
      pattern: '^(?:true|[0-9]{1,16})$',
      description:
        'Also seals the task in the same transaction: `true`, or the total number of partitions of the task',
      examples: ['true'],
    }),
  ),
}

function sealOf(headers: IncomingHttpHeaders): NonNullable<BatchedCallBack['seal']> | null {
  const text = headers[SEAL_HEADER]
  if (text === undefined) return null
  if (text === 'true') return { partitions: null }
  const partitions = typeof text === 'string' && /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(partitions)) return { partitions }
  throw invalidRequest('Baton-Seal must be true or the total number of partitions of the task')
}

const SETTINGS_HEADER = 'task-settings'

/** What a call-back asks for besides storing partitions, for the audit. */
const besides = ({ [SEAL_HEADER]: seal, [SETTINGS_HEADER]: settings }: IncomingHttpHeaders) => ({
  ...(seal === undefined ? {} : { 'Baton-Seal': seal }),
  ...(settings === undefined ? {} : { 'Task-Settings': settings }),
})

/** Checks a large array piece by piece, between other requests. Stays pending if the connection closes. */
function checkPieces(
  array: JsonArrayText,
  options: CallBackOptions,
  slicer: TimeSlicer,
  socket: Socket,
): Promise<CallBackCheck> {
  const checker = new CallBackChecker(options)
  const pieces = array.pieces()
  return new Promise((resolve, reject) => {
    slicer.add(socket, () => {
      try {
        const { value: piece, done } = pieces.next()
        if (done !== true) for (const element of piece) checker.take(element)
        else resolve(checker.result())
        return done !== true
      } catch (error) {
        reject(error)
        return false
      }
    })
  })
}

export function callBackRoute(
  app: FastifyInstance,
  context: RouteContext,
  reached: ReachedLimits,
  slicer: TimeSlicer,
): void {
  const { handOff, tableField, unknownFields, callBackLimitBytes, callBackLevels, tokens, tracing } = context
  const options = { tableField, unknownFields, maxLevels: callBackLevels }
  const check = async (body: unknown, socket: Socket): Promise<CallBackCheck> => {
    if (!(body instanceof JsonArrayText)) return checkCallBack(body, options)
    // A large object is refused without parsing it.
    return body.isArray ? checkPieces(body, options, slicer, socket) : checkCallBack({}, options)
  }
  app.route({
    method: 'POST',
    url: '/call-back',
    bodyLimit: callBackLimitBytes,
    config: { access: 'call-back' },
    schema: {
      operationId: 'callBack',
      summary: 'Call back partitions of a task',
      tags: ['hand-off'],
      headers: Type.Object({ ...producerHeader, ...sealHeader, ...settingsHeader }),
      body: callBackRequestSchema(tableField, unknownFields),
      response: answers(callBackAnswerSchema, 'All partitions of the array are stored durably'),
    },
    handler: tracing.handler('POST /call-back', async (request, reply) => {
      const { headers, socket } = request.raw
      const seal = sealOf(headers)
      const settings = settingsIn(headers, handOff)
      const checked = await check(request.body, socket)
      if (!checked.ok) {
        if (checked.tooManyLevels) reached.note('call-back-levels', socket.remoteAddress)
        throw brokenContract('the array violates the contract', checked)
      }
      const { callBack } = checked
      tracing.about(callBack.taskId)
      const token = tokens.of(headers)
      requireCallBackLimits(token, callBack)
      requireWeightLimit(token, settings?.weight)
      const owner = token?.name ?? null
      const more = {
        owner,
        sharesTask: sharesTasks(token),
        ownerLimits: ownerLimits(token),
        seal,
        settings,
        by:
          seal === null && settings === null ? undefined : context.requesterOf(request.raw, besides(headers)),
        traceparent: tracing.traceparent(headers),
      }
      const result = await whileHeld(request.raw, () => handOff.callBack(callBack, instanceOf(headers), more))
      switch (result.kind) {
        case 'stored': {
          const { accepted, duplicates } = result
          return reply.send({ taskId: callBack.taskId, accepted, duplicates })
        }
        case 'conflict':
          throw conflictProblem(callBack, result.conflicts, result.total, tableField)
        case 'more_are_known':
          throw invalidRequest(
            `Baton-Seal expects fewer partitions than the task would have (${result.known}); nothing was stored`,
          )
        case 'backoff_max_shorter':
          throw invalidRequest(
            'Task-Settings: backoff-max-seconds of the task must not be less than its backoff-seconds; nothing was stored',
          )
        case 'not_own':
          throw ofAnother()
        case 'too_many_levels':
          throw new RequestProblem(
            'too_many_levels',
            `with this array, the task would have more than ${result.most} levels with unfinished partitions`,
          )
        case 'too_many_lanes':
          throw refusedLanes(token, result)
        case 'owner_limited':
          throw refusedOpenWork(result)
        default:
          throw new RequestProblem(result.kind, refusals[result.kind])
      }
    }),
  })
}

const refusals = {
  task_cancelled: 'the task is cancelled and accepts no new partitions, seal or settings',
  task_sealed: 'the task is sealed, and the array contains new partitions',
  record_total_too_large: 'with this array, the record total of the task would exceed 2^53 - 1',
}

function settingsIn(headers: IncomingHttpHeaders, { policy }: HandOff): TaskSettingsChange | null {
  const text = headers[SETTINGS_HEADER]
  if (text === undefined) return null
  const read = readTaskSettings(String(text))
  if (!read.ok) throw invalidRequest(`Task-Settings: ${read.detail}`)
  const change = settingsChange(read.settings as TaskSettingsRequest)
  const setting = policy.delivery === 'at-most-once' ? settingThatNeedsLeases(change) : undefined
  if (setting === undefined) return change
  const what = setting === 'levelBarrier' ? 'a level barrier' : settingWord(setting)
  throw invalidRequest(`Task-Settings: ${what} requires leases, and this service delivers at most once`)
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
    `${number} already stored with different content; nothing of the array was stored`,
    { extra: omitted > 0 ? { conflicts, conflictsOmitted: omitted } : { conflicts } },
  )
}

function describe(callBack: CallBack, { position, known }: KnownConflict, tableField: string): Conflict {
  const sent = callBack.partitions[position]
  if (sent === undefined) throw new Error(`a conflict at ${position}, beyond the array`)
  const names: Readonly<Record<ContentField, string>> = {
    spelling: 'partition_name',
    recordCount: 'record_count',
    computeTableName: tableField,
    extraFields: 'additional fields',
  }
  const shown = (field: ContentField, partition: CalledBackPartition) => {
    if (field === 'spelling') return nameOf(callBack.taskId, partition)
    return field === 'extraFields' ? shortFields(partition[field] ?? null) : partition[field]
  }
  const detail = differingFields(sent, known)
    .map((field) => {
      const [here, before] = [shown(field, sent), shown(field, known)]
      const verb = field === 'extraFields' ? 'are' : 'is'
      return `${names[field]} ${verb} ${here} in the request and ${before} in the stored descriptor`
    })
    .join('; ')
  return { pointer: `/${position}`, partition_name: nameOf(callBack.taskId, sent), detail }
}

const MAX_SHOWN = 200

/** With the length, to tell apart texts that differ only after the cut. */
function shortFields(fields: string | null): string {
  if (fields === null) return 'empty'
  return fields.length <= MAX_SHOWN ? fields : `${fields.slice(0, MAX_SHOWN)}… (${fields.length} characters)`
}
