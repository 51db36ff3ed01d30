import { parseLeaseId } from '../../packages/server/src/handoff/lease-id.ts'
import type { BatchedSettle, HandOffAnswers, HandOffBatch } from '../../packages/server/src/handoff/store.ts'
import type { Chance } from '../chaos/support/chance.ts'
import {
  brief,
  type Call,
  controlCall,
  handOffCall,
  maintainCall,
  pauseCall,
  releaseCall,
  revokeLeaseCall,
  sweepCall,
  tableCall,
} from './calls.ts'
import { GRACE_MILLIS, type SimulatedNode } from './node.ts'
import { type Fault, type Parts, Simulation } from './simulation.ts'
import { emptyBatch, WORKERS, Workload } from './workload.ts'

export interface Outcome {
  readonly operations: number
  /** The control requests that changed something, and the tasks that paused themselves. */
  readonly changes: ReadonlySet<string>
  /** How often each fault occurred. */
  readonly faults: ReadonlyMap<Fault, number>
  /** Null if nothing was found. */
  readonly failure: Error | null
  readonly story: readonly string[]
}

/** How often each event happens, per thousand steps. */
interface Weather {
  readonly crash: number
  readonly freeze: number
  readonly takeOver: number
  readonly clock: number
  readonly outage: number
  readonly failOver: number
  readonly lost: number
  readonly doubled: number
}

const DAY = 86_400_000
const STEPS_PER_COMPARISON = 25
const COMPARISONS_PER_AUDIT = 8
const STEPS_PER_LOOK = 40
/** By then, requests that are on their way have mostly been answered. */
const QUIET_MILLIS = 100
/** A node that does not answer gets no more calls than this. */
const CALLS_UNDER_WAY = 6

/**
 * Runs a few nodes from an empty database until all work is finished. The same seed gives the same sequence of
 * events.
 */
export async function episode(
  seed: number,
  steps: number,
  parts: Partial<Parts> = {},
  isTold = false,
): Promise<Outcome> {
  const simulation = new Simulation(seed, parts, isTold)
  try {
    await new Episode(simulation).run(steps)
  } catch (error) {
    simulation.fail(error)
  }
  const { operations, failure, story, model, met } = simulation
  return { operations, failure, changes: model.changes, faults: met, story: story ?? [] }
}

class Episode {
  readonly #simulation: Simulation
  readonly #workload: Workload
  readonly #weather: Weather
  readonly #chanceOfControl: Chance
  readonly #chanceOfOperators: Chance
  /** How often operators limit or pause tables, let tasks pause themselves, pause instances or release partitions, per thousand steps. */
  readonly #operators: number
  #steps = 0
  #stepsLeft = 0
  /** The largest call-back. */
  readonly #longest: number
  #isOver = false

  constructor(simulation: Simulation) {
    this.#simulation = simulation
    this.#workload = new Workload(simulation.chance.for('workload'))
    const { chance } = simulation
    this.#chanceOfControl = chance.for('control')
    this.#chanceOfOperators = chance.for('operators')
    this.#operators = this.#chanceOfOperators.pick([0, 10, 40])
    this.#longest = chance.for('long lanes').pick([120, 120, 120, 900])
    this.#weather = {
      crash: chance.pick([0, 2, 10]),
      freeze: chance.pick([0, 2, 10]),
      takeOver: chance.pick([0, 2, 20]),
      clock: chance.pick([0, 1, 5]),
      outage: chance.pick([0, 2, 6]),
      failOver: chance.for('fail-overs').pick([0, 0, 10]),
      lost: chance.pick([0, 20, 100]),
      doubled: chance.pick([0, 10, 50]),
    }
  }

  async run(steps: number): Promise<void> {
    const simulation = this.#simulation
    this.#stepsLeft = steps
    simulation.lead(simulation.leader)
    this.#plan()
    await simulation.until(() => this.#isOver, 'the steps do not end', 100 * steps)
    if (simulation.failure === null) await this.#conclude()
  }

  #plan(): void {
    const { time } = this.#simulation
    if (this.#steps > 0 && this.#steps % STEPS_PER_LOOK === 0) {
      time.after(QUIET_MILLIS, () => this.#lookAtAll())
      time.after(2 * QUIET_MILLIS, () => this.#planStep())
    } else this.#planStep()
  }

  #lookAtAll(): void {
    const { leader, model } = this.#simulation
    for (const taskId of model.tasks.keys()) void this.#simulation.compareViews(leader, taskId)
  }

  #planStep(): void {
    const { time, chance } = this.#simulation
    time.after(chance.below(8), () => {
      if (this.#stepsLeft === 0) {
        this.#isOver = true
        return
      }
      this.#stepsLeft -= 1
      this.#step()
      this.#plan()
    })
  }

  #step(): void {
    const simulation = this.#simulation
    const { chance } = simulation
    this.#steps += 1
    if (this.#steps % STEPS_PER_COMPARISON === 0) simulation.compare(false)
    if (this.#steps % (STEPS_PER_COMPARISON * COMPARISONS_PER_AUDIT) === 0) {
      simulation.compare(true)
      void simulation.audit()
    }
    if (simulation.leader.store === null && chance.happens(0.2)) simulation.lead(simulation.leader)
    this.#disturb(chance.below(1000))
    if (this.#chanceOfOperators.below(1000) < this.#operators) this.#operate()
    const drawn = chance.below(1000)
    if (drawn < 20) this.#control()
    else if (drawn < 60) this.#sweep()
    else if (drawn < 70) this.#maintain()
    else if (drawn < 80) this.#look()
    else if (drawn < 86) this.#release()
    else if (this.#workload.isLarge()) this.#largeCallBack()
    else this.#send(this.#workload.batch())
  }

  #disturb(drawn: number): void {
    const simulation = this.#simulation
    const { chance, leader } = simulation
    const { crash, freeze, takeOver, clock, outage, failOver } = this.#weather
    if (drawn < crash) {
      simulation.meet('process killed')
      simulation.tell(() => `${leader.name} is killed`)
      const restarted = simulation.kill(leader)
      simulation.lead(chance.happens(0.5) ? restarted : chance.pick(simulation.nodes))
    } else if (drawn < crash + freeze) {
      simulation.meet('process frozen')
      simulation.tell(() => `${leader.name} freezes`)
      leader.frozenUntil = simulation.time.now + chance.between(5, 300)
      if (chance.happens(0.8)) simulation.lead(chance.pick(simulation.nodes))
    } else if (drawn < crash + freeze + takeOver) simulation.lead(chance.pick(simulation.nodes))
    else if (drawn < crash + freeze + takeOver + clock) {
      simulation.meet('clock set')
      simulation.shiftClock(chance.pick(simulation.nodes).name, chance.pick([-500, -50, 200, 3000, 20_000]))
    } else if (drawn < crash + freeze + takeOver + clock + outage)
      simulation.beginOutage(chance.between(50, 400))
    else if (drawn < crash + freeze + takeOver + clock + outage + failOver) {
      simulation.stopReplication()
      simulation.time.after(chance.between(1, 60), () => simulation.failOver())
    }
  }

  /** Mostly the leader. A client that does not know of a new leader calls the old one. */
  #target(): SimulatedNode {
    const { chance, leader } = this.#simulation
    return chance.happens(0.95) ? leader : chance.pick(this.#simulation.nodes)
  }

  #mayCall(node: SimulatedNode): boolean {
    if (node.store === null || node.calls.size >= CALLS_UNDER_WAY) return false
    for (const { what } of node.calls) if (what === 'maintain') return false
    return true
  }

  #send(batch: HandOffBatch, largeTask: string | null = null): void {
    this.#forward(() => this.#handOff(batch, largeTask))
  }

  /** A request on its way to the leader: it may be lost, late, or sent again. `arrive` says if it was taken. */
  #forward(arrive: () => boolean, chance = this.#simulation.chance): void {
    const simulation = this.#simulation
    const { lost, doubled } = this.#weather
    let taken = 0
    const reach = () => {
      if (!arrive()) return
      taken += 1
      if (taken === 2) simulation.meet('request doubled')
    }
    const send = () => {
      if (chance.below(1000) < lost) return simulation.meet('request lost')
      if (chance.happens(0.7)) reach()
      else simulation.time.after(chance.below(50), reach)
    }
    send()
    if (chance.below(1000) < doubled) send()
  }

  #handOff(batch: HandOffBatch, largeTask: string | null): boolean {
    const simulation = this.#simulation
    const node = this.#target()
    if (!this.#mayCall(node) || requestsOf(batch) === 0) return false
    // A small and a large call-back of one task are not sent at the same time: it would be unclear to which
    // an entry belongs.
    for (const call of node.calls)
      if ((largeTask === null) !== (call.largeTask === null))
        if (
          batch.callBacks.some(({ callBack }) =>
            call.batch?.callBacks.some((other) => other.callBack.taskId === callBack.taskId),
          )
        )
          return false
    simulation.operations += requestsOf(batch)
    simulation.tell(() => `${node.name} is asked ${brief(batch)}`)
    void this.#answer(node.run(handOffCall(batch, largeTask)))
    return true
  }

  async #answer(running: Promise<unknown>): Promise<void> {
    const answer = await running
    if (answer === undefined) return
    const isLost = this.#simulation.chance.happens(this.#weather.lost / 1000)
    if (isLost) this.#simulation.meet('answer lost')
    else this.#workload.answered(answer as HandOffAnswers)
  }

  #largeCallBack(): void {
    const request = this.#workload.callBack(this.#simulation.chance.between(11, this.#longest))
    const { taskId, partitions } = request.callBack
    const isLarge = partitions.length > this.#simulation.largeCallBack
    this.#send({ ...emptyBatch(), callBacks: [request] }, isLarge ? taskId : null)
  }

  #control(): void {
    const request = this.#workload.control()
    this.#forward(() => this.#call((node) => node.run(controlCall(request))), this.#chanceOfControl)
  }

  #sweep(): void {
    const { chance } = this.#simulation
    const limit = chance.pick([1, 10, 1000])
    this.#call((node) => node.run(sweepCall(limit, node)))
  }

  #release(): void {
    const request = this.#workload.release()
    this.#forward(() => this.#call((node) => node.run(releaseCall(request))), this.#chanceOfControl)
  }

  #operate(): void {
    const chance = this.#chanceOfOperators
    const drawn = chance.below(12)
    let call: () => Call
    if (drawn < 5) {
      const change = this.#workload.tableChange(chance)
      call = () => tableCall(change)
    } else if (drawn < 7) {
      const request = this.#workload.pause(chance)
      call = () => pauseCall(request)
    } else if (drawn < 9) {
      const request = this.#workload.selfPause(chance)
      call = () => controlCall(request)
    } else {
      const lease = this.#workload.partition(chance)
      call = () => revokeLeaseCall(lease)
    }
    this.#forward(() => this.#call((node) => node.run(call())), chance)
  }

  /** Takes several appends, which look like those of other calls, so it runs only without other calls. */
  #maintain(): void {
    const { chance } = this.#simulation
    const request = {
      retentionMillis: chance.pick([0, 500, DAY]),
      auditMillis: DAY,
    }
    this.#call((node) => {
      for (const { largeTask } of node.calls) if (largeTask === null) return
      void node.run(maintainCall(request))
    })
  }

  #look(): void {
    const { chance } = this.#simulation
    const taskId = `t${chance.between(1, 8)}`
    this.#call((node) =>
      node.look((store) =>
        chance.happens(0.5)
          ? store.task(taskId)
          : store.partitions({ taskId, state: null, level: null, after: null, limit: 20 }),
      ),
    )
  }

  /** False if no node takes the call. */
  #call(ask: (node: SimulatedNode) => unknown): boolean {
    const node = this.#target()
    if (!this.#mayCall(node)) return false
    this.#simulation.operations += 1
    void ask(node)
    return true
  }

  /** All faults end and all work is finished: nothing is stuck, nothing is lost. */
  async #conclude(): Promise<void> {
    const simulation = this.#simulation
    simulation.heal()
    const { model } = simulation
    const { name } = simulation.leader
    for (const other of simulation.nodes) other.isDead = true
    const node = simulation.addNode(name)
    // Messages of the other processes may still arrive and make its first start fail.
    const start = () => {
      if (node.store !== null) return
      simulation.lead(node)
      simulation.time.after(1, start)
    }
    start()
    await simulation.until(() => node.store !== null, 'no leader starts')
    await this.#wait(new Promise<void>((resolve) => simulation.time.after(GRACE_MILLIS, resolve)))
    for (const taskId of model.tasks.keys()) await this.#wait(simulation.compareViews(node, taskId))
    for (const table of this.#workload.tables())
      await this.#wait(node.run(tableCall({ table, maxLeases: null, paused: false })))
    for (const instanceId of WORKERS)
      await this.#wait(node.run(pauseCall({ instanceId, role: 'worker', paused: false })))
    for (let round = 0; simulation.failure === null; round += 1) {
      if (round === 1000) throw new Error('work is left that is never handed out')
      for (const { taskId, cancelled, paused, counts } of model.tasks.values()) {
        if (cancelled) continue
        if (paused) await this.#ask(node, { verb: 'resume', taskId })
        if (counts.parked > 0)
          await this.#ask(node, { verb: 'retry', taskId, level: null, partitions: null, done: false })
      }
      simulation.shiftClock(node.name, 20_000)
      await this.#wait(node.run(sweepCall(10_000, node)))
      const pulls = [{ instance: null, batch: 50, records: null, key: null, tables: null, tasks: null }]
      const pull = { ...emptyBatch(), pulls }
      const answer = await this.#wait(node.run(handOffCall(pull, null)))
      const leases = (answer as HandOffAnswers | undefined)?.pulls[0]?.partitions ?? []
      if (leases.length > 0) await this.#finish(node, leases)
      if (leases.length === 0 && [...model.tasks.values()].every((task) => task.cancelled || task.isDone))
        break
    }
    simulation.compare(true)
    await this.#wait(simulation.audit())
  }

  #ask(node: SimulatedNode, request: Parameters<typeof controlCall>[0]): Promise<unknown> {
    return this.#wait(node.run(controlCall(request)))
  }

  async #finish(node: SimulatedNode, given: HandOffAnswers['pulls'][number]['partitions']): Promise<void> {
    const batch = { ...emptyBatch(), settles: [allDone(given)] }
    await this.#wait(node.run(handOffCall(batch, null)))
  }

  async #wait<Answer>(answer: Promise<Answer>): Promise<Answer | undefined> {
    let isThere = false
    let found: Answer | undefined
    void answer.then((value) => {
      isThere = true
      found = value
    })
    await this.#simulation.until(() => isThere, 'a call is not answered')
    return found
  }
}

function allDone(given: HandOffAnswers['pulls'][number]['partitions']): BatchedSettle {
  const reported = {
    outcome: 'done',
    reason: null,
    retryAfterMillis: null,
    final: false,
    records: null,
  } as const
  const leases = given
    .map(({ lease }) => parseLeaseId(lease?.id ?? ''))
    .filter((lease) => lease !== undefined)
  return { instance: null, settlements: leases.map((lease) => ({ lease, reported })) }
}

const requestsOf = ({ settles, renews, undos, callBacks, pulls }: HandOffBatch): number =>
  settles.length + renews.length + undos.length + callBacks.length + pulls.length
