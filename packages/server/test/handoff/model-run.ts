import type { CalledBackPartition } from '@baton/protocol'
import { formatLeaseId, type LeaseRef } from '../../src/handoff/lease-id.ts'
import type { ControlRequest } from '../../src/handoff/rules/control.ts'
import type { Policy } from '../../src/handoff/rules/policy.ts'
import type { HandOffBatch } from '../../src/handoff/store.ts'
import { batchedCallBack, Driver, leaseOf, settlement } from '../store/conformance/driver.ts'
import { type StoreHarness, type StoreUnderTest, TestClock } from '../store/conformance/harness.ts'
import { Model } from './model.ts'
import { audit, compare, hasToLearn } from './model-compare.ts'
import { controlModel } from './model-control.ts'
import { claim } from './model-disagreement.ts'
import { type CallBackStep, type LeasePick, type Step, tables } from './model-steps.ts'

/**
 * Reading a view makes a store flush deferred writes, and an audit makes it reload its cache. So there are
 * steps after which the store is not read.
 */
const STEPS_PER_LOOK = 3
const LOOKS_PER_AUDIT = 4

/**
 * Runs a store and the model through the same steps and compares them after every few steps and at the end.
 * With a run length, every index and every lease in a step stands for this many in a row.
 */
export async function runModel(
  harness: StoreHarness,
  policy: Policy,
  steps: readonly Step[],
  runLength = 1,
): Promise<void> {
  const clock = new TestClock()
  const under = await harness.open({ policy, clock })
  try {
    const run = new ModelRun(under, policy, clock, runLength)
    for (const step of steps) await run.take(step)
    await run.conclude()
  } finally {
    await under.dispose()
  }
}

class ModelRun {
  readonly #driver: Driver
  readonly #model: Model
  readonly #clock: TestClock
  readonly #runLength: number
  readonly #given: string[] = []
  #steps = 0

  constructor(under: StoreUnderTest, policy: Policy, clock: TestClock, runLength: number) {
    this.#runLength = runLength
    this.#driver = new Driver(under, clock)
    this.#model = new Model(policy, clock.now)
    this.#clock = clock
  }

  async take(step: Step): Promise<void> {
    switch (step.kind) {
      case 'hand-off':
        await this.#handOff(step)
        break
      case 'pass':
        this.#clock.advance(step.millis)
        if (!step.sweep) break
        this.#model.sweep()
        await this.#driver.sweep()
        break
      case 'look':
        await compare(this.#model, this.#driver)
        break
      case 'restart':
        await this.#driver.reopen()
        break
      case 'maintain':
        await this.#driver.maintainAll(step.retentionMillis)
        this.#model.maintain(step.retentionMillis)
        break
      case 'release':
        await this.#release(step.instanceId)
        break
      default:
        await this.#control(controlOrderOf(step, this.#runLength))
    }
    this.#model.commit()
    this.#steps += 1
    if (this.#steps % STEPS_PER_LOOK === 0 || hasToLearn(this.#model))
      await compare(this.#model, this.#driver)
    if (this.#steps % (STEPS_PER_LOOK * LOOKS_PER_AUDIT) === 0) await audit(this.#driver)
  }

  async conclude(): Promise<void> {
    await compare(this.#model, this.#driver)
    await audit(this.#driver)
  }

  /** In the order in which a store processes a batch: settle, renew, undo, call back, pull. */
  async #handOff(step: Extract<Step, { kind: 'hand-off' }>): Promise<void> {
    const settles = step.settles.map((array) =>
      array.flatMap(({ lease, ...reported }) =>
        this.#leases(lease).map((one) => ({ lease: one, order: settlement(reported) })),
      ),
    )
    const renews = step.renews.map((array) => array.flatMap((lease) => this.#leases(lease)))
    const batch: HandOffBatch = {
      settles: settles.map((settlements) => ({ instance: null, settlements })),
      renews: renews.map((leases) => ({ leases })),
      undos: step.undos.flatMap((lease) => this.#leases(lease)),
      callBacks: step.callBacks.map((one) =>
        batchedCallBack(one.taskId, descriptorsOf(one, this.#runLength)),
      ),
      pulls: step.pulls,
    }
    const answers = await this.#driver.batch(batch)
    const model = this.#model
    for (const [at, array] of settles.entries())
      for (const [position, { lease, order: reported }] of array.entries())
        this.#claimVerdict(lease, answers.settles[at]?.[position], (id) => model.settle(id, reported))
    for (const [at, array] of renews.entries())
      for (const [position, lease] of array.entries())
        this.#claimVerdict(lease, answers.renews[at]?.[position]?.refused, (id) => model.renew(id))
    const undone = batch.undos.filter((lease) => model.undo(formatLeaseId(lease))).length
    claim(answers.undone === undone, `${answers.undone} leases were undone instead of ${undone}`)
    for (const [at, { callBack }] of batch.callBacks.entries()) {
      const expected = model.callBack(callBack)
      const { kind, ...counts } = answers.callBacks[at] ?? { kind: 'nothing' }
      const { accepted, duplicates } = { accepted: undefined, duplicates: undefined, ...counts }
      const isAsExpected =
        kind === expected.kind && accepted === expected.accepted && duplicates === expected.duplicates
      claim(isAsExpected, `a call-back was answered ${kind} ${accepted}, not ${JSON.stringify(expected)}`)
    }
    for (const [at, pull] of step.pulls.entries()) {
      const result = answers.pulls[at] ?? { partitions: [], repeated: false }
      model.pulled(pull, result)
      if (result.repeated) continue
      this.#given.push(...result.partitions.flatMap(({ lease }) => lease?.id ?? []))
    }
  }

  /**
   * For a lease that is unknown, forged or of a purged partition, it matters only that the request has no
   * effect: a store need not keep old secrets to distinguish the refusals.
   */
  #claimVerdict(
    lease: LeaseRef,
    verdict: string | null | undefined,
    expect: (leaseId: string) => string | null,
  ): void {
    const expected = expect(formatLeaseId(lease))
    const isAsExpected = expected === 'lease_unknown' ? typeof verdict === 'string' : verdict === expected
    claim(isAsExpected, `a lease was answered ${verdict} instead of ${expected}`)
  }

  async #control(request: ControlRequest): Promise<void> {
    const expected = controlModel(this.#model, request)
    const result = await this.#driver.control(request)
    claim(result.kind === expected, `${request.verb} was answered ${result.kind} instead of ${expected}`)
    // A rerun continues in steps; the model knows only its end.
    await this.#driver.maintainAll()
  }

  async #release(instanceId: string): Promise<void> {
    const expected = this.#model.revoke(instanceId)
    const { released, parked } = await this.#driver.store.releaseInstance({ instanceId, limit: 100_000 })
    claim(
      released === expected.released && parked === expected.parked,
      `a release reported ${released} leases and ${parked} parked, not ${JSON.stringify(expected)}`,
    )
  }

  #leases({ pick, forged }: LeasePick): LeaseRef[] {
    const from = pick * this.#runLength
    return Array.from({ length: this.#runLength }, (_, at) => this.#lease(from + at, forged))
  }

  #lease(pick: number, forged: LeasePick['forged']): LeaseRef {
    const given = this.#given.length === 0 ? undefined : this.#given.at(pick % this.#given.length)
    const lease = given === undefined ? { partition: 1, term: 1, secret: 'A'.repeat(16) } : leaseOf(given)
    switch (forged) {
      case 'secret':
        return { ...lease, secret: 'A'.repeat(16) }
      case 'term':
        return { ...lease, term: lease.term + 1000 }
      case 'partition':
        return { ...lease, partition: lease.partition + 1_000_000 }
      case null:
        return lease
    }
  }
}

/** Sizes and tables are derived from level and index, so that most call-backs agree. */
function descriptorsOf({ places, contradicts }: CallBackStep, runLength: number): CalledBackPartition[] {
  return places.flatMap(({ level, index }, position) =>
    Array.from({ length: runLength }, (_, at) => ({
      level,
      index: index * runLength + at,
      recordCount: contradicts && position === 0 && at === 0 ? 999 : (index % 4) * 50,
      computeTableName: tables[(level + (index % 3 === 0 ? 1 : 0)) % tables.length] as string,
      spelling: null,
    })),
  )
}

function controlOrderOf(
  step: Extract<Step, { kind: 'control' | 'barrier' | 'retry' | 'settings' }>,
  runLength: number,
): ControlRequest {
  const { taskId } = step
  if (step.kind === 'settings') return { verb: 'settings', taskId, settings: step.settings }
  if (step.kind === 'barrier') return { verb: 'level-barrier', taskId, enabled: step.enabled }
  if (step.kind === 'control')
    return step.verb === 'seal'
      ? { verb: 'seal', taskId, expectedPartitions: null }
      : { verb: step.verb, taskId }
  const { level, named, done } = step
  const partitions = named === null ? null : [{ level: named.level, index: named.index * runLength }]
  return { verb: 'retry', taskId, level, partitions, done }
}
