import type { RowChanges } from '../../packages/server/src/handoff/disk.ts'
import { openEngine } from '../../packages/server/src/handoff/engine/engine-store.ts'
import type { EngineOptions } from '../../packages/server/src/handoff/engine/runner.ts'
import type { Policy } from '../../packages/server/src/handoff/rules/policy.ts'
import { type Store, StoreUnavailable } from '../../packages/server/src/handoff/store.ts'
import { recountIn } from '../../packages/server/test/support/recount.ts'
import { Chance } from '../chaos/support/chance.ts'
import { brief, type Call } from './calls.ts'
import type { DiskFaults } from './faulty-disk.ts'
import { compareAll, compareChanged } from './model/comparing.ts'
import { copy } from './model/copy.ts'
import { disagree } from './model/disagreement.ts'
import { Model } from './model/model.ts'
import { Truth } from './model/truth.ts'
import { compareViews, readViews, type Shown } from './model/views.ts'
import { GRACE_MILLIS, SimulatedNode } from './node.ts'
import { ReplicatedDatabase } from './replicated-database.ts'
import { VirtualTime } from './virtual-time.ts'

/** Parts of a simulation that can be replaced, to see whether it finds the difference. */
export interface Parts {
  readonly engine: (options: EngineOptions) => Promise<Store>
}

/** What is counted, and must occur. */
export const faults = [
  'request lost',
  'request doubled',
  'answer lost',
  'process killed',
  'process frozen',
  'clock set',
  'take-over',
  'clock jumps at a take-over from itself',
  'database stands still',
  'sweep queued over an outage',
  'commits lost',
  'standby lacks the entry of a staged call-back',
  'transaction fails',
  'write fails',
  'write in doubt',
  'write late',
  'read fails',
] as const

export type Fault = (typeof faults)[number]

const REAL: Parts = { engine: openEngine }

const NODES = ['a', 'b', 'c']
const START = 1_780_000_000_000

/**
 * Nodes on one database, one of which is the leader, with injected faults between them, and the model of what
 * was answered. All randomness comes from the seed and time is virtual, so a seed always gives the same
 * sequence of events.
 */
export class Simulation {
  readonly chance: Chance
  readonly time = new VirtualTime()
  readonly database = new ReplicatedDatabase()
  model: Model
  #truth: Truth
  readonly policy: Policy
  readonly engine: Parts['engine']
  readonly faults: { -readonly [Share in keyof DiskFaults]: number }
  /** How often each fault occurred. */
  readonly met = new Map<Fault, number>()
  /** Tasks with a large call-back that is not closed. */
  readonly staging = new Set<string>()
  /** The trace of events, or null if it is not recorded. */
  readonly story: string[] | null
  leader: SimulatedNode
  /** The last process that took over. */
  writer: SimulatedNode | null = null
  failure: Error | null = null
  /** The number of requests to a store. */
  operations = 0
  /** The number of calls, answers, take-overs and fail-overs: what the model knows changes only with these. */
  events = 0
  /** What was answered until replication to a standby stopped. */
  #standby: Model | null = null
  /** How often a standby has taken over. Each time, all connections are closed. */
  failOvers = 0
  /** The database does not answer until then. */
  outageUntil = 0
  #graceUntil = 0
  /** How often the clock is ahead after a take-over. */
  readonly #jumps: number
  /** How often a transaction fails after some of its changes. */
  #failing: number
  /** The clock offset of each node. */
  readonly #clocks = new Map<string, number>()
  /** Includes killed processes, whose last writes may still arrive. */
  readonly #processes = new Set<SimulatedNode>()
  readonly #options: Omit<EngineOptions, 'disk' | 'clock'>
  /** A call-back with more partitions runs concurrently with other calls. */
  readonly largeCallBack: number

  constructor(seed: number, parts: Partial<Parts> = {}, isTold = false) {
    const { engine } = { ...REAL, ...parts }
    this.chance = new Chance(seed).for('simulation')
    this.story = isTold ? [] : null
    this.#truth = new Truth(this.database.db)
    this.engine = engine
    const { chance } = this
    this.faults = faultsOf(chance)
    this.policy = {
      delivery: 'at-least-once',
      leaseMillis: chance.pick([500, 2000, 10_000]),
      leaseMillisPerThousandRecords: 0,
      maxAttempts: chance.pick([2, 5]),
      backoffMillis: chance.pick([100, 1000]),
      backoffMaxMillis: 4000,
      levelBarrier: chance.happens(0.3),
    }
    const spread = chance.below(1000) / 1000
    this.model = new Model(this.policy, spread)
    this.largeCallBack = chance.pick([10, 40])
    const secrets = chance.for('secrets')
    const failures = chance.for('failures')
    this.#failing = failures.pick([0, 0.002, 0.02])
    // In the middle of a transaction.
    const mayFail = () => {
      if (!failures.happens(this.#failing)) return
      this.meet('transaction fails')
      throw new StoreUnavailable('store_unavailable', 'a transaction failed')
    }
    this.#options = {
      policy: this.policy,
      random: () => {
        mayFail()
        return spread
      },
      secret: () => {
        mayFail()
        return `1${String(secrets.below(2 ** 32)).padStart(15, '0')}`
      },
      nextIteration: () => new Promise((resolve) => this.time.after(0, resolve)),
      limits: {
        partitions: chance.pick([20, 200, 50_000]),
        keys: chance.pick([5, 20_000]),
        flushRows: chance.pick([10, 100, 1500]),
        flushEntries: chance.pick([2, 10, 50]),
        flushPiece: chance.pick([5, 40, 1000]),
        // Calls are identified by their order.
        flushAheadRows: Number.POSITIVE_INFINITY,
        largeCallBack: this.largeCallBack,
        piece: chance.pick([3, 20]),
      },
    }
    this.#jumps = chance.pick([0, 0, 0.2])
    this.leader = this.addNode(NODES[0] as string)
    for (const name of NODES.slice(1)) this.addNode(name)
  }

  get nodes(): SimulatedNode[] {
    return [...this.#processes].filter(({ isDead }) => !isDead)
  }

  /** What is durable now. */
  get truth(): Truth {
    return this.#truth.refresh()
  }

  wrote(rowChanges: RowChanges): void {
    this.#truth.forget(rowChanges)
  }

  addNode(name: string): SimulatedNode {
    const node = new SimulatedNode(name, this)
    this.#processes.add(node)
    return node
  }

  clockOf(name: string): number {
    return START + Math.floor(this.time.now) + (this.#clocks.get(name) ?? 0)
  }

  shiftClock(name: string, millis: number): void {
    this.#clocks.set(name, (this.#clocks.get(name) ?? 0) + millis)
  }

  #beginGrace(): void {
    this.#graceUntil = this.time.now + GRACE_MILLIS
  }

  get isGrace(): boolean {
    return this.time.now < this.#graceUntil
  }

  /** The database stands still, and what it is asked waits. */
  beginOutage(millis: number): void {
    this.meet('database stands still')
    this.tell(() => 'the database stands still')
    this.outageUntil = this.time.now + millis
    this.time.after(millis, () => {
      this.#beginGrace()
      for (const node of this.nodes) node.beginGrace()
    })
  }

  lead(node: SimulatedNode): void {
    this.leader = node
    if (node.store === null && !node.isStarting) void node.start(this.database, this.#options)
  }

  kill(node: SimulatedNode): SimulatedNode {
    node.isDead = true
    return this.addNode(node.name)
  }

  /** From now on, a standby gets no more commits. */
  stopReplication(): void {
    if (!this.compare(false)) return
    this.database.stopReplication()
    this.#standby = copy(this.model)
  }

  /** The standby takes over: what was committed since is lost, also if it was answered. */
  failOver(): void {
    const standby = this.#standby
    this.#standby = null
    if (standby === null || !this.database.failOver()) return
    this.meet('commits lost')
    this.tell(() => 'the last commits are lost')
    this.failOvers += 1
    this.events += 1
    this.model = standby
    this.#truth = new Truth(this.database.db)
    // No process knows what the database has until it takes over.
    this.writer = null
    for (const process of this.#processes) process.forget()
    const staged = new Set(this.truth.staging())
    for (const { calls } of this.nodes)
      for (const { largeTask } of calls)
        if (largeTask !== null && this.staging.has(largeTask) && !staged.has(largeTask))
          this.meet('standby lacks the entry of a staged call-back')
    this.staging.clear()
    for (const taskId of staged) this.staging.add(taskId)
  }

  /** All faults end. */
  heal(): void {
    this.tell(() => 'everything heals')
    Object.assign(this.faults, { fails: 0, doubt: 0, late: 0, reads: 0 })
    this.#failing = 0
    this.outageUntil = 0
    this.#standby = null
  }

  answered(node: SimulatedNode, call: Call, answer: unknown): void {
    const { append } = call
    this.events += 1
    this.tell(() => `${node.name} ${call.what} ${brief(answer)}`)
    if (append?.isForgotten === true) return
    if (append?.isDurable !== true) call.answered(answer, node, append)
    else if (append.isJudged) call.late(answer, node)
    else {
      append.isJudged = true
      call.answered(answer, node, append)
    }
  }

  /** What became durable without an answer is known from here on: earlier writers can add nothing more. */
  tookOver(node: SimulatedNode): void {
    this.meet('take-over')
    this.tell(() => `${node.name} takes over`)
    const isFromItself = this.writer === node
    this.writer = node
    this.events += 1
    // The leader's clock is that of the database when it took over, also from itself.
    if (this.chance.happens(this.#jumps)) {
      if (isFromItself) this.meet('clock jumps at a take-over from itself')
      this.shiftClock(node.name, this.chance.pick([3000, 20_000]))
    }
    this.#beginGrace()
    try {
      for (const process of this.#processes) {
        for (const append of process.missed()) {
          append.isJudged = true
          this.tell(() => `${process.name} ${append.call?.what} unanswered`)
          append.call?.lost(process, append)
        }
        process.inDoubt.clear()
        // An answer that is still in flight is about an earlier time.
        for (const { append } of process.calls) if (append?.isDurable === true) append.isJudged = true
        if (process.isDead) this.#processes.delete(process)
      }
      const { model, truth } = this
      for (const taskId of model.tasks.keys()) model.unseen.add(taskId)
      this.staging.clear()
      for (const taskId of truth.staging()) this.staging.add(taskId)
      compareChanged(model, truth)
    } catch (error) {
      this.fail(error)
    }
  }

  /** Something durable was not answered yet. */
  get #isMissingAnswers(): boolean {
    for (const process of this.#processes) for (const _ of process.missed()) return true
    return false
  }

  /** Compares the model with what is durable, unless something durable was not answered yet. */
  compare(all: boolean): boolean {
    if (this.#isMissingAnswers) return false
    const { truth } = this
    if (all) compareAll(this.model, truth)
    else compareChanged(this.model, truth)
    return true
  }

  /**
   * Compares what a node shows of a task with the model, if nothing else happens meanwhile and the task or the
   * memory of the node has changed since the last time.
   */
  async compareViews(node: SimulatedNode, taskId: string): Promise<void> {
    const isQuiet = () => this.writer === node && node.calls.size === 0 && !this.#isMissingAnswers
    if (!isQuiet() || !this.model.unseen.has(taskId)) return
    const { events } = this
    const shown = (await node.look((store) => readViews(store, taskId))) as Shown | undefined
    const task = this.model.tasks.get(taskId)
    if (shown === undefined || events !== this.events || !isQuiet()) return
    // The steps of a rerun are known only at its end.
    if (task === undefined || !task.isKnown || task.rerunning || this.staging.has(taskId)) return
    try {
      compareViews(task, shown)
      this.model.unseen.delete(taskId)
    } catch (error) {
      this.fail(error)
    }
  }

  /** Whatever happens meanwhile, rows and entries must not contradict each other. */
  async audit(): Promise<void> {
    const findings = await recountIn(this.database)
    if (findings.length > 0) this.fail(new Error(`the audit found: ${findings.join('; ')}`))
  }

  fail(error: unknown): void {
    this.failure ??= error instanceof Error ? error : new Error(String(error))
  }

  meet(fault: Fault): void {
    this.met.set(fault, (this.met.get(fault) ?? 0) + 1)
  }

  tell(text: () => string): void {
    this.story?.push(`${String(this.time.now).padStart(7)} ${text()}`)
  }

  /** Runs until the condition is true, and throws if it never becomes true. */
  async until(isSo: () => boolean, what: string, events = 100_000): Promise<void> {
    for (let left = events; left > 0; left -= 1) {
      await this.time.settled()
      if (this.failure !== null || isSo()) return
      if (!this.time.next()) break
    }
    disagree(`${what}, however long one waits`)
  }
}

function faultsOf(chance: Chance): DiskFaults {
  const often = chance.pick([0, 0.002, 0.01, 0.05])
  const share = () => (often * chance.below(100)) / 100
  return { fails: share(), doubt: share(), late: share(), reads: share() / 10 }
}
