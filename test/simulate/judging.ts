import type { ControlOrder, ControlResult } from '../../packages/server/src/handoff/rules/control.ts'
import { formatLeaseId, type LeaseRef } from '../../packages/server/src/handoff/rules/lease-id.ts'
import type {
  CallBackOrder,
  CallBackResult,
  HandOffAnswers,
  HandOffBatch,
  SweepOrder,
  SweepResult,
  TidyOrder,
} from '../../packages/server/src/handoff/store.ts'
import { disagree } from './model/disagreement.ts'
import { learnPulls, learnSteps, learnSweep } from './model/learning.ts'
import { controlModel } from './model/model-control.ts'
import { Truth } from './model/truth.ts'
import type { Append, Call, SimulatedNode } from './node.ts'

/** A call with what it comes to: its answer is held against the model, which then takes the same step. */
export function handOffCall(batch: HandOffBatch, largeTask: string | null): Call {
  const tasks = new Set(batch.callBacks.map(({ callBack }) => callBack.taskId))
  const what = largeTask === null ? 'hand-off' : `large call-back of ${largeTask}`
  return callOf(
    { what, largeTask, tasks },
    {
      answered: (answer: HandOffAnswers, node, append) => {
        const { model } = node.simulation
        if (append?.isDurable !== true) {
          const isRefused = largeTask !== null && answer.callBacks.every((result) => !isAccepted(result))
          if (!isEmptyPull(batch, answer) && !isRefused)
            disagree('a batch was answered before it was durable')
          // One that no longer leads may find nothing where there is something.
          if (node.simulation.writer !== node) return
        }
        model.now = append?.isDurable === true ? append.now : node.clockRead
        judge(batch, answer, node)
        model.conclude()
      },
      lost: (node, append) => {
        const { model, medium } = node.simulation
        const truth = new Truth(medium)
        model.now = append.now
        if (largeTask !== null && !batch.callBacks.some((order) => isStored(node, truth, order))) return false
        apply(batch, node)
        learnPulls(model, truth, batch.pulls)
        model.conclude()
        return true
      },
      late: (answer: HandOffAnswers, node) => {
        const { model } = node.simulation
        for (const { partitions } of answer.pulls)
          for (const { lease } of partitions)
            if (lease !== null && !model.knowsLease(lease.id))
              disagree(`the lease ${lease.id} was answered and is lost`)
        for (const [at, { callBack }] of batch.callBacks.entries())
          if (answer.callBacks[at]?.kind === 'stored')
            for (const { level, index } of callBack.partitions)
              if (model.tasks.get(callBack.taskId)?.find(level, index) === undefined)
                disagree(`${callBack.taskId}-${level}-${index} was accepted and is lost`)
      },
    },
  )
}

export function controlCall(order: ControlOrder): Call {
  return callOf(
    { what: `${order.verb} ${order.taskId}` },
    {
      answered: (answer: ControlResult, node, append) => {
        const { model, medium } = node.simulation
        if (append?.isDurable !== true) disagree(`${order.verb} was answered before it was durable`)
        model.now = append.now
        const expected = controlModel(model, order)
        if (answer.kind !== expected)
          disagree(`${order.verb} was answered ${answer.kind} instead of ${expected}`)
        if (order.verb === 'retry' && order.done) learnSteps(model, new Truth(medium), 0)
        model.conclude()
      },
      lost: (node, append) => {
        const { model, medium } = node.simulation
        model.now = append.now
        controlModel(model, order)
        if (order.verb === 'retry' && order.done) learnSteps(model, new Truth(medium), 0)
        model.conclude()
      },
    },
  )
}

export function sweepCall(order: SweepOrder): Call {
  return callOf(
    { what: 'sweep' },
    {
      answered: (answer: SweepResult, node, append) => {
        const { model, medium } = node.simulation
        if (append?.isDurable !== true) {
          if (answer.expired + answer.woken > 0) disagree('a sweep was answered before it was durable')
          return
        }
        model.now = append.now
        learnSweep(model, new Truth(medium), order, answer)
        model.conclude()
      },
      lost: (node, append) => {
        const { model, medium } = node.simulation
        model.now = append.now
        learnSweep(model, new Truth(medium), order, null)
        model.conclude()
      },
    },
  )
}

/** It is alone: so what was removed or made to run again was so by this call. */
export function tidyCall({ retentionMillis }: TidyOrder): Call {
  const learn = (node: SimulatedNode, append: Append | null) => {
    if (append === null) return
    const { model, medium } = node.simulation
    model.now = append.now
    learnSteps(model, new Truth(medium), append.now - retentionMillis)
    model.conclude()
  }
  return callOf(
    { what: 'tidy' },
    {
      answered: (_answer: unknown, node, append) => learn(node, append),
      lost: learn,
    },
  )
}

/** Short enough to be read by the dozen. */
export function brief(value: unknown): string {
  const text = JSON.stringify(value, (name, part) =>
    part === null || (Array.isArray(part) && part.length === 0) || name === 'computeTableName'
      ? undefined
      : part,
  )
  return text.replaceAll('"', '').slice(0, 1500)
}

interface Judgement<Answer> {
  readonly answered: (answer: Answer, node: SimulatedNode, append: Append | null) => void
  /** It became durable, and its answer was lost or is still under way. False: it did not, after all. */
  readonly lost: (node: SimulatedNode, append: Append) => boolean | void
  /** The answer arrives after all. */
  readonly late?: (answer: Answer, node: SimulatedNode) => void
}

function callOf<Answer>(
  of: { readonly what: string } & Partial<Pick<Call, 'largeTask' | 'tasks'>>,
  judgement: Judgement<Answer>,
): Call {
  const { what, largeTask = null, tasks = new Set<string>() } = of
  return {
    what,
    largeTask,
    tasks,
    append: null,
    isJudged: false,
    judge(answer, node, append) {
      node.simulation.tell(
        () => `${node.name} ${what} ${answer === undefined ? 'unanswered' : brief(answer)}`,
      )
      if (answer === undefined) {
        if (append === null) return
        this.isJudged = judgement.lost(node, append) !== false
        // What became durable was only a part of it.
        if (!this.isJudged) this.append = null
        return
      }
      if (this.isJudged) judgement.late?.(answer as Answer, node)
      else judgement.answered(answer as Answer, node, append)
      this.isJudged = true
    },
  }
}

/** In the order in which a store goes through a batch. */
function judge(batch: HandOffBatch, answer: HandOffAnswers, node: SimulatedNode): void {
  const { model } = node.simulation
  for (const [at, { settlements }] of batch.settles.entries())
    for (const [position, { lease, order }] of settlements.entries())
      judgeVerdict(lease, answer.settles[at]?.[position], (id) => model.settle(id, order))
  for (const [at, { leases }] of batch.renews.entries())
    for (const [position, lease] of leases.entries())
      judgeVerdict(lease, answer.renews[at]?.[position]?.refused, (id) => model.renew(id))
  let undone = 0
  for (const lease of batch.undos) if (model.undo(formatLeaseId(lease))) undone += 1
  if (answer.undone !== undone) disagree(`${answer.undone} leases were undone instead of ${undone}`)
  for (const [at, order] of batch.callBacks.entries()) judgeCallBack(order, answer.callBacks[at], node)
  for (const [at, order] of batch.pulls.entries())
    model.pulled(order, answer.pulls[at] ?? disagree('a pull was not answered'))
}

/** The same without an answer. Pulls are left to what is stored. */
function apply({ settles, renews, undos, callBacks }: HandOffBatch, node: SimulatedNode): void {
  const { model } = node.simulation
  for (const { settlements } of settles)
    for (const { lease, order } of settlements) model.settle(formatLeaseId(lease), order)
  for (const { leases } of renews) for (const lease of leases) model.renew(formatLeaseId(lease))
  for (const lease of undos) model.undo(formatLeaseId(lease))
  for (const { callBack } of callBacks) model.callBack(callBack, null)
}

/** Of a lease that is unknown, forged or of a partition long purged, it matters only that it has no effect. */
function judgeVerdict(
  lease: LeaseRef,
  verdict: string | null | undefined,
  expect: (leaseId: string) => string | null,
): void {
  const id = formatLeaseId(lease)
  const expected = expect(id)
  const isAsExpected = expected === 'lease_unknown' ? typeof verdict === 'string' : verdict === expected
  if (!isAsExpected) disagree(`the lease ${id} was answered ${verdict} instead of ${expected}`)
}

function judgeCallBack(
  { callBack }: CallBackOrder,
  answer: CallBackResult | undefined,
  node: SimulatedNode,
): void {
  const expected = node.simulation.model.callBack(callBack, answer?.kind ?? null)
  const { kind, accepted, duplicates } = { accepted: undefined, duplicates: undefined, kind: '', ...answer }
  if (kind !== expected.kind || accepted !== expected.accepted || duplicates !== expected.duplicates)
    disagree(
      `a call-back of ${callBack.taskId} was answered ${kind} ${accepted} ${duplicates}, not ${JSON.stringify(expected)}`,
    )
}

function isStored(node: SimulatedNode, truth: Truth, { callBack }: CallBackOrder): boolean {
  const { model } = node.simulation
  const stored = truth.task(callBack.taskId)
  if (stored === undefined) return false
  const known = model.tasks.get(callBack.taskId)
  return callBack.partitions.some(
    ({ level, index }) => known?.find(level, index) === undefined && truth.has(stored.id, level, index),
  )
}

const isAccepted = (result: CallBackResult): boolean => result.kind === 'stored' && result.accepted > 0

function isEmptyPull({ settles, renews, undos, callBacks }: HandOffBatch, answer: HandOffAnswers): boolean {
  if (settles.length + renews.length + undos.length + callBacks.length > 0) return false
  return answer.pulls.every(({ partitions, repeated }) => partitions.length === 0 && !repeated)
}
