import { isDeepStrictEqual } from 'node:util'
import { formatLeaseId } from '../../packages/server/src/handoff/lease-id.ts'
import type { ControlRequest } from '../../packages/server/src/handoff/rules/control.ts'
import type {
  BatchedCallBack,
  CallBackResult,
  HandOffAnswers,
  HandOffBatch,
  MaintenanceRequest,
  NewlyReadyOf,
  NotRevoked,
  PartitionRef,
  PauseRequest,
  RevokeRequest,
  RevokeResult,
  Store,
  SweepRequest,
  SweepResult,
  TableChange,
  TableChanged,
} from '../../packages/server/src/handoff/store.ts'
import { disagree } from './model/disagreement.ts'
import { learnPulls, learnRelease, learnSteps, learnSweep, type ModelSweep } from './model/learning.ts'
import type { Model } from './model/model.ts'
import { controlModel, pauseInstance, revokeLease, setTable } from './model/model-control.ts'
import type { Truth } from './model/truth.ts'
import type { Append, SimulatedNode } from './node.ts'
import type { Simulation } from './simulation.ts'

/** A call to a store, and how its answer is checked. */
export interface Call {
  readonly what: string
  /** Of a hand-off. */
  readonly batch: HandOffBatch | null
  /**
   * The task of a call-back that is so large that it runs concurrently with other calls. Its entries are
   * found by the task.
   */
  readonly largeTask: string | null
  /** Its position among the calls of its process. */
  number: number
  append: Append | null
  ask(store: Store): Promise<unknown>
  /** Checks the answer against the model, which takes the same step. */
  answered(answer: unknown, node: SimulatedNode, append: Append | null): void
  /** It became durable, and its answer was lost or is still in flight. */
  lost(node: SimulatedNode, append: Append): void
  /** Its answer arrives after `lost` was called. */
  late(answer: unknown, node: SimulatedNode): void
}

const call = ({
  what,
  ask,
  answered,
  lost,
  batch = null,
  largeTask = null,
  late = () => undefined,
}: Pick<Call, 'what' | 'ask' | 'answered' | 'lost'> & Partial<Call>): Call => ({
  what,
  batch,
  largeTask,
  number: 0,
  append: null,
  ask,
  answered,
  lost,
  late,
})

export function handOffCall(batch: HandOffBatch, largeTask: string | null = null): Call {
  return call({
    what: largeTask === null ? 'hand-off' : `large call-back of ${largeTask}`,
    batch,
    largeTask,
    ask: (store) => store.runBatch(batch),
    answered: (answer, node, append) => judgeHandOff(batch, answer as HandOffAnswers, node, append),
    lost: ({ simulation: { model, truth } }, append) => {
      model.now = append.now
      // Its entry may have been an earlier one than the last.
      if (largeTask !== null && !batch.callBacks.some((callBack) => isStored(model, truth, callBack))) return
      apply(batch, model)
      learnPulls(model, truth, batch.pulls)
      model.conclude()
    },
    late: (answer, { simulation: { model } }) => judgeLate(batch, answer as HandOffAnswers, model),
  })
}

function judgeHandOff(
  batch: HandOffBatch,
  answer: HandOffAnswers,
  node: SimulatedNode,
  append: Append | null,
): void {
  const { model, writer } = node.simulation
  if (append?.isDurable !== true) {
    if (!isEmptyPull(batch, answer) && !isRefused(batch, answer))
      disagree('a batch was answered before it was durable')
    // A deposed leader may find nothing although something is ready.
    if (writer !== node) return
  }
  model.now = append?.isDurable === true ? append.now : node.clockRead
  const expectHint = hintOf(model)
  judge(batch, answer, model)
  model.conclude()
  expectHint(answer.newlyReady, answer.newlyReadyOf)
}

/**
 * Pulls wait while nothing can be handed out. The step that changes this has to say so, or they wait on. Call
 * it before the step, and the result after it.
 */
function hintOf(model: Model): (newlyReady: number, newlyReadyOf?: readonly NewlyReadyOf[] | null) => void {
  if (model.firstOpenLane() !== null) return () => undefined
  return (newlyReady, newlyReadyOf) => {
    const lane = model.firstOpenLane()
    if (lane === null) return
    const { taskId } = lane.task
    const isHint = ([task, table]: NewlyReadyOf) =>
      (task === null || task === taskId) && model.hasOf(lane, table)
    if (newlyReady === 0 || newlyReadyOf?.some(isHint) === false)
      disagree(`waiting pulls were not told that level ${lane.level} of ${taskId} has work`)
  }
}

function judgeLate(batch: HandOffBatch, answer: HandOffAnswers, model: Model): void {
  for (const { partitions } of answer.pulls)
    for (const { lease } of partitions)
      if (lease !== null && !model.knowsLease(lease.id))
        disagree(`the lease ${lease.id} was answered and is lost`)
  for (const [at, { callBack }] of batch.callBacks.entries())
    if (answer.callBacks[at]?.kind === 'stored')
      for (const { level, index } of callBack.partitions)
        if (model.tasks.get(callBack.taskId)?.find(level, index) === undefined)
          disagree(`${callBack.taskId}-${level}-${index} was accepted and is lost`)
}

export function sweepCall(limit: number, node: SimulatedNode): Call {
  const sweep: ModelSweep = { limit, expiresUpTo: null }
  const { simulation } = node
  const { now: askedAt } = simulation.time
  const request: SweepRequest = {
    limit,
    // Only leases that have ended by the time of this question may expire, and none in the grace.
    mayExpireLeases: () => {
      const { outageUntil, time, isGrace } = simulation
      if (askedAt < outageUntil && outageUntil <= time.now) simulation.meet('sweep queued over an outage')
      sweep.expiresUpTo = isGrace ? null : node.clockRead
      return node.mayExpireLeases()
    },
  }
  const take = (
    { simulation: { model, truth } }: SimulatedNode,
    append: Append,
    answer: SweepResult | null,
  ) => {
    model.now = append.now
    const expectHint = hintOf(model)
    learnSweep(model, truth, sweep, answer)
    model.conclude()
    if (answer !== null) expectHint(answer.woken, answer.newlyReadyOf)
  }
  return call({
    what: 'sweep',
    ask: (store) => store.sweep(request),
    answered: (answer, node, append) => {
      const { expired, woken } = answer as SweepResult
      if (append?.isDurable === true) take(node, append, answer as SweepResult)
      else if (expired + woken > 0) disagree('a sweep was answered before it was durable')
    },
    lost: (node, append) => take(node, append, null),
  })
}

export function releaseCall(request: RevokeRequest): Call {
  const take = (
    { simulation: { model, truth } }: SimulatedNode,
    append: Append,
    answer: RevokeResult | null,
  ) => {
    model.now = append.now
    const expectHint = hintOf(model)
    learnRelease(model, truth, request, answer)
    model.conclude()
    if (answer !== null) expectHint(answer.newlyReady)
  }
  return call({
    what: `revocation of ${request.instanceId}`,
    ask: (store) => store.revokeLeases(request),
    answered: (answer, node, append) => {
      const { model, writer } = node.simulation
      if (append?.isDurable === true) return take(node, append, answer as RevokeResult)
      if ((answer as RevokeResult).revoked > 0) disagree('a release was answered before it was durable')
      // A deposed leader may find no leases although there are some.
      if (writer !== node) return
      for (const { holder } of model.leased)
        if (holder === request.instanceId) disagree(`a release of ${holder} found none of its leases`)
    },
    lost: (node, append) => take(node, append, null),
  })
}

/** A call that the model can follow from the request alone. `take` returns the expected answer. */
function operatorCall<Answer>(
  what: string,
  ask: (store: Store) => Promise<Answer>,
  take: (model: Model, simulation: Simulation) => Answer,
): Call {
  const follow = ({ simulation }: SimulatedNode, append: Append) => {
    const { model } = simulation
    model.now = append.now
    const expected = take(model, simulation)
    model.conclude()
    return expected
  }
  return call({
    what,
    ask,
    answered: (answer, node, append) => {
      if (append?.isDurable !== true) disagree(`${what} was answered before it was durable`)
      const expectHint = hintOf(node.simulation.model)
      const expected = follow(node, append)
      const { newlyReady, newlyReadyOf, ...rest } = {
        newlyReady: 0,
        ...(answer as object),
      } as Partial<TableChanged>
      if (!isDeepStrictEqual(isObject(answer) ? rest : answer, expected))
        disagree(`${what} was answered ${JSON.stringify(answer)} instead of ${JSON.stringify(expected)}`)
      expectHint(newlyReady ?? 0, newlyReadyOf)
    },
    lost: follow,
  })
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null

/** Waiting pulls are told what it makes ready; the answer is compared without that. */
type Told<Answer> = Answer | Omit<Answer, 'newlyReady' | 'newlyReadyOf'>

export const controlCall = (request: ControlRequest): Call =>
  operatorCall<Told<Pick<TableChanged, 'newlyReady' | 'newlyReadyOf'> & { readonly kind: string }>>(
    `${request.verb} ${request.taskId}`,
    async (store) => {
      const result = await store.control(request)
      const { kind } = result
      return kind === 'applied'
        ? { kind, newlyReady: result.newlyReady, newlyReadyOf: result.newlyReadyOf }
        : { kind }
    },
    (model, simulation) => {
      const kind = controlModel(model, request)
      if (request.verb === 'retry' && request.done) learnSteps(model, simulation.truth, 0)
      return { kind }
    },
  )

export const tableCall = (change: TableChange): Call =>
  operatorCall<Told<TableChanged>>(
    `settings of ${change.table}`,
    (store) => store.setTable(change),
    (model) => ({ settings: setTable(model, change) }),
  )

export const pauseCall = (request: PauseRequest): Call =>
  operatorCall<number | null>(
    `${request.paused ? 'pause' : 'resume'} ${request.instanceId}`,
    (store) => store.pauseInstance(request),
    (model) => pauseInstance(model, request),
  )

export const revokeLeaseCall = (lease: PartitionRef): Call =>
  operatorCall<Told<RevokeResult> | NotRevoked>(
    `revocation of ${lease.taskId}-${lease.level}-${lease.index}`,
    (store) => store.revokeLease(lease),
    (model) => revokeLease(model, lease),
  )

/** No other call runs, so everything that was removed or rerun was so by this call. */
export function maintainCall(request: MaintenanceRequest): Call {
  const take = ({ simulation }: SimulatedNode, append: Append | null) => {
    if (append === null) return
    const { model, truth } = simulation
    model.now = append.now
    learnSteps(model, truth, append.now - request.retentionMillis)
    model.conclude()
  }
  return call({
    what: 'maintain',
    ask: (store) => store.maintain(request),
    answered: (_answer, node, append) => take(node, append),
    lost: take,
  })
}

/** In the order in which a store processes a batch. */
function judge(batch: HandOffBatch, answer: HandOffAnswers, model: Model): void {
  for (const [at, { settlements }] of batch.settles.entries())
    for (const [position, { lease, reported }] of settlements.entries()) {
      const id = formatLeaseId(lease)
      judgeVerdict(id, answer.settles[at]?.[position], model.settle(id, reported))
    }
  for (const [at, { leases }] of batch.renews.entries())
    for (const [position, lease] of leases.entries()) {
      const id = formatLeaseId(lease)
      judgeVerdict(id, answer.renews[at]?.[position]?.refused, model.renew(id, lease.checkpoint))
    }
  let undone = 0
  for (const lease of batch.undos) if (model.undo(formatLeaseId(lease))) undone += 1
  if (answer.undone !== undone) disagree(`${answer.undone} leases were undone instead of ${undone}`)
  for (const [at, callBack] of batch.callBacks.entries()) judgeCallBack(callBack, answer.callBacks[at], model)
  for (const [at, pull] of batch.pulls.entries())
    model.pulled(pull, answer.pulls[at] ?? disagree('a pull was not answered'))
}

/** The same without an answer. Pulls are derived from what is stored. */
function apply({ settles, renews, undos, callBacks }: HandOffBatch, model: Model): void {
  for (const { settlements } of settles)
    for (const { lease, reported } of settlements) model.settle(formatLeaseId(lease), reported)
  for (const { leases } of renews)
    for (const lease of leases) model.renew(formatLeaseId(lease), lease.checkpoint)
  for (const lease of undos) model.undo(formatLeaseId(lease))
  for (const { callBack } of callBacks) model.callBack(callBack, null)
}

/**
 * For a lease that is unknown, forged or of a purged partition, it matters only that the request has no
 * effect.
 */
function judgeVerdict(id: string, verdict: string | null | undefined, expected: string | null): void {
  const isAsExpected = expected === 'lease_unknown' ? typeof verdict === 'string' : verdict === expected
  if (!isAsExpected) disagree(`the lease ${id} was answered ${verdict} instead of ${expected}`)
}

function judgeCallBack(
  { callBack }: BatchedCallBack,
  answer: CallBackResult | undefined,
  model: Model,
): void {
  const expected = model.callBack(callBack, answer?.kind ?? null)
  const { accepted, duplicates } =
    answer?.kind === 'stored' ? answer : { accepted: undefined, duplicates: undefined }
  const kind = answer?.kind
  if (kind !== expected.kind || accepted !== expected.accepted || duplicates !== expected.duplicates)
    disagree(
      `a call-back of ${callBack.taskId} was answered ${kind} ${accepted} ${duplicates}, not ${JSON.stringify(expected)}`,
    )
}

function isStored(model: Model, truth: Truth, { callBack }: BatchedCallBack): boolean {
  const stored = truth.task(callBack.taskId)
  if (stored === undefined) return false
  const known = model.tasks.get(callBack.taskId)
  return callBack.partitions.some(
    ({ level, index }) => known?.find(level, index) === undefined && truth.has(stored.id, level, index),
  )
}

/** For a large call-back that changes nothing, its own entry cannot be identified. */
const isRefused = ({ callBacks }: HandOffBatch, answer: HandOffAnswers): boolean =>
  callBacks.length === 1 &&
  answer.callBacks.every((result) => result.kind !== 'stored' || result.accepted === 0)

function isEmptyPull({ settles, renews, undos, callBacks }: HandOffBatch, answer: HandOffAnswers): boolean {
  if (settles.length + renews.length + undos.length + callBacks.length > 0) return false
  return answer.pulls.every(({ partitions, repeated }) => partitions.length === 0 && !repeated)
}

/** Short enough for a long trace. */
export function brief(value: unknown): string {
  if (value === null) return 'null'
  const text = JSON.stringify(value, (name, part) =>
    part === null || (Array.isArray(part) && part.length === 0) || name === 'computeTableName'
      ? undefined
      : part,
  )
  return text.replaceAll('"', '').slice(0, 1500)
}
