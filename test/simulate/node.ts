import { isDeepStrictEqual } from 'node:util'
import type { Appended, RowChanges } from '../../packages/server/src/handoff/disk.ts'
import { decodeEntry } from '../../packages/server/src/handoff/engine/entry.ts'
import type { EngineOptions } from '../../packages/server/src/handoff/engine/runner.ts'
import { type Store, StoreUnavailable } from '../../packages/server/src/handoff/store.ts'
import type { MemoryDatabase } from '../../packages/server/test/support/memory-database.ts'
import type { Call } from './calls.ts'
import { type Appending, faultyDisk, type Host } from './faulty-disk.ts'
import type { Fault, Simulation } from './simulation.ts'

/** An append, and the call that it makes durable. */
export interface Append {
  isDurable: boolean
  /** It changes nothing, so losing its answer loses no information. */
  readonly isEmpty: boolean
  /** The time that the engine used. */
  readonly now: number
  readonly call: Call | undefined
  /** The model has taken the same step. */
  isJudged: boolean
  /** It was lost in a fail-over. */
  isForgotten: boolean
}

/** After a take-over or an outage, no lease expires for this long. */
export const GRACE_MILLIS = 100

/** In every entry that changes no partitions, and in a few others. */
const NO_PARTITIONS = ',[]'.repeat(6)

/** One process of a node. It may be killed, may freeze, and may wrongly believe that it is the leader. */
export class SimulatedNode implements Host {
  readonly name: string
  readonly simulation: Simulation
  frozenUntil = 0
  isDead = false
  store: Store | null = null
  isStarting = false
  /** The last time that the engine was given, and the number of calls until then. */
  clockRead = 0
  #graceUntil = 0
  #callsThen = 0
  #calls = 0
  /** A batch that runs again because its keys are known: it has the same calls as the first time. */
  #again: number | null = null
  /** In flight, in the order of the calls. */
  readonly calls = new Set<Call>()
  /** Failed, but may have become durable. */
  readonly inDoubt = new Set<Append>()

  constructor(name: string, simulation: Simulation) {
    this.name = name
    this.simulation = simulation
  }

  get time() {
    return this.simulation.time
  }

  get chance() {
    return this.simulation.chance
  }

  get failOvers() {
    return this.simulation.failOvers
  }

  get outageUntil() {
    return this.simulation.outageUntil
  }

  get faults() {
    return this.simulation.faults
  }

  async start(database: MemoryDatabase, options: Omit<EngineOptions, 'disk' | 'clock'>): Promise<void> {
    this.isStarting = true
    const clock = () => {
      this.clockRead = this.simulation.clockOf(this.name)
      this.#callsThen = this.#calls
      return this.clockRead
    }
    try {
      this.store = await this.simulation.engine({ ...options, disk: faultyDisk(database, this), clock })
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) this.simulation.fail(error)
    }
    this.isStarting = false
  }

  /** Runs a call. Its result is checked when it is answered, or when another process takes over. */
  async run(call: Call): Promise<unknown> {
    const { store, simulation } = this
    if (store === null) return undefined
    this.#calls += 1
    simulation.events += 1
    call.number = this.#calls
    this.calls.add(call)
    try {
      const answer = await call.ask(store)
      this.calls.delete(call)
      simulation.answered(this, call, answer)
      return answer
    } catch (error) {
      this.calls.delete(call)
      if (call.largeTask === null) this.#again = null
      simulation.tell(() => `${this.name} ${call.what} failed: ${error}`)
      if (!(error instanceof StoreUnavailable)) simulation.fail(error)
      else if (call.append?.isJudged === false) this.inDoubt.add(call.append)
      return undefined
    }
  }

  /** Requests a view, which makes nothing durable. */
  async look(ask: (store: Store) => Promise<unknown>): Promise<unknown> {
    try {
      return this.store === null ? undefined : await ask(this.store)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) this.simulation.fail(error)
      return undefined
    }
  }

  /** Appends with changes that the model does not know yet. */
  *missed(): Generator<Append> {
    const appends = new Set(this.inDoubt)
    for (const { append } of this.calls) if (append !== null) appends.add(append)
    for (const append of appends) if (append.isDurable && !append.isEmpty && !append.isJudged) yield append
  }

  /** What became durable is lost, and so is the meaning of its answers. */
  forget(): void {
    this.inDoubt.clear()
    for (const { append } of this.calls)
      if (append?.isDurable === true) {
        append.isJudged = true
        append.isForgotten = true
      }
  }

  meet(fault: Fault): void {
    this.simulation.meet(fault)
  }

  mayOpen(): boolean {
    return this.simulation.leader === this || this.chance.happens(0.1)
  }

  opened(): void {
    this.tookOver()
    this.simulation.tookOver(this)
  }

  tookOver(): void {
    this.beginGrace()
  }

  /** Workers get time to renew before their leases expire. */
  beginGrace(): void {
    this.#graceUntil = this.time.now + GRACE_MILLIS
  }

  mayExpireLeases(): boolean {
    return this.time.now >= this.#graceUntil
  }

  flushing(upTo: number): void {
    this.simulation.tell(() => `${this.name} flushes up to ${upTo}`)
  }

  wrote(rowChanges: RowChanges): void {
    this.simulation.wrote(rowChanges)
  }

  appending(entry: Appended): Appending {
    const { simulation, clockRead: now } = this
    const callsThen = this.#again ?? this.#callsThen
    this.#again = null
    const staged = this.#stagedBy(entry)
    const isEmpty = this.#isEmpty(entry)
    let append: Append | null = null
    return {
      // Only now, because it is known only now which calls were answered meanwhile.
      isUnderWay: () => {
        const call = this.#callOf(staged, callsThen)
        append = {
          isDurable: false,
          isEmpty,
          now,
          call,
          isJudged: false,
          isForgotten: false,
        }
        if (call !== undefined) call.append = append
        simulation.tell(() => `${this.name} appends ${entry.number} for ${call?.what}`)
      },
      isDurable: () => {
        if (append !== null) append.isDurable = true
        if (staged !== null && !simulation.staging.delete(staged)) simulation.staging.add(staged)
      },
      isRunAgain: () => {
        this.#again = callsThen
      },
    }
  }

  /**
   * An entry is also appended if nothing changed that the model knows: to repeat that a call-back is not open,
   * and to count a call-back that has nothing new.
   */
  #isEmpty({ body }: Appended): boolean {
    if (!body.includes(NO_PARTITIONS)) return false
    const { tasks, lanes, partitions, tableSettings, instances } = decodeEntry(body)
    if (partitions.length + tableSettings.length > 0) return false
    if (instances.some(([, , , pausedAt]) => pausedAt !== undefined)) return false
    const areTasksSame = tasks.every((stored) => {
      const { taskId, paused, cancelled, sealed, levelBarrier, reruns, settings, failureWindow } = stored
      const task = this.simulation.model.tasks.get(taskId)
      if (task === undefined) return settings === null
      const isSame = task.paused === paused && task.cancelled === cancelled && task.sealed === sealed
      if (!isSame || task.failureWindow !== failureWindow) return false
      return task.barrier === levelBarrier && reruns.length === 0 && task.isSetTo(settings ?? {})
    })
    if (!areTasksSame || lanes.length === 0) return areTasksSame
    // A request to skip parked partitions changes lanes alone, too.
    const { truth } = this.simulation
    return lanes.every((lane) => isDeepStrictEqual(lane, truth.laneWithId(lane.id)))
  }

  /** The task whose large call-back an entry opens or closes. */
  #stagedBy({ body }: Appended): string | null {
    const { staging } = this.simulation
    const isNamed = (taskId: string) => body.includes(`"${taskId}"`)
    if (!body.includes('{"first":') && ![...staging].some(isNamed)) return null
    const changed = decodeEntry(body).tasks.find(
      (task) => (task.staging !== null) !== staging.has(task.taskId),
    )
    return changed?.taskId ?? null
  }

  /** Calls run in the order in which they came, but for large call-backs. */
  #callOf(staged: string | null, callsThen: number): Call | undefined {
    for (const call of this.calls) if (call.largeTask === staged && call.number <= callsThen) return call
    return undefined
  }
}
