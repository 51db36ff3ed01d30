import type { MemoryMedium } from '../../packages/server/src/disk/memory/memory-medium.ts'
import type { Appended, Disk } from '../../packages/server/src/handoff/disk.ts'
import { decodeEntry } from '../../packages/server/src/handoff/engine/entry.ts'
import type { EngineOptions } from '../../packages/server/src/handoff/engine/runner.ts'
import { type Store, StoreUnavailable } from '../../packages/server/src/handoff/store.ts'
import { FaultyDisk, type Host } from './faulty-disk.ts'
import type { Simulation } from './simulation.ts'

/** The append that makes a call durable. */
export interface Append {
  isDurable: boolean
  /** Nothing is changed by it: a lost answer is nothing that was missed. */
  readonly isEmpty: boolean
  /** The time that the engine went by. */
  readonly now: number
}

/** How the body of an entry ends that is about tasks alone, or about nothing. */
const TASKS_ALONE = `${',[]'.repeat(10)},null]`

/** Something that was asked of a store. */
export interface Call {
  readonly what: string
  /** The task of a call-back so large that it goes beside other calls; its entries are known by the task. */
  readonly largeTask: string | null
  /** The tasks of its call-backs. */
  readonly tasks: ReadonlySet<string>
  /** Holds the answer against the model. Without an answer, takes over what became durable. */
  readonly judge: (answer: unknown, node: SimulatedNode, append: Append | null) => void
  append: Append | null
  /** It was taken over before it was answered. */
  isJudged: boolean
}

/** One process of a node, which may be killed, freeze, and think that it leads. */
export class SimulatedNode implements Host {
  readonly name: string
  readonly simulation: Simulation
  frozenUntil = 0
  isDead = false
  store: Store | null = null
  isStarting = false
  /** What the engine was told last. */
  clockRead = 0
  /** Under way, in the order of the calls. */
  readonly calls = new Set<Call>()
  /** They failed, and may have become durable all the same. */
  readonly inDoubt = new Set<Call>()

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

  get faults() {
    return this.simulation.faults
  }

  async start(medium: MemoryMedium, options: Omit<EngineOptions, 'disk' | 'clock'>): Promise<void> {
    this.isStarting = true
    const disk: Disk = new FaultyDisk(medium, this)
    const clock = () => {
      this.clockRead = this.simulation.clockOf(this.name)
      return this.clockRead
    }
    try {
      this.store = await this.simulation.engine({ ...options, disk, clock })
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) this.simulation.fail(error)
    }
    this.isStarting = false
  }

  /** Runs a call; what comes of it is judged when it is answered, or when somebody takes over. */
  async run(call: Call, ask: (store: Store) => Promise<unknown>): Promise<unknown> {
    const { store } = this
    if (store === null) return undefined
    this.calls.add(call)
    try {
      const answer = await ask(store)
      this.calls.delete(call)
      call.judge(answer, this, call.append)
      return answer
    } catch (error) {
      this.calls.delete(call)
      if (!(error instanceof StoreUnavailable)) this.simulation.fail(error)
      else if (!call.isJudged && call.append !== null) this.inDoubt.add(call)
      this.simulation.tell(() => `${this.name} ${call.what} failed: ${error}`)
      return undefined
    }
  }

  /** A view: nothing becomes durable by it. */
  async look(ask: (store: Store) => Promise<unknown>): Promise<unknown> {
    try {
      return this.store === null ? undefined : await ask(this.store)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) this.simulation.fail(error)
      return undefined
    }
  }

  mayOpen(): boolean {
    return this.simulation.leader === this || this.chance.happens(0.1)
  }

  opened(): void {
    this.simulation.tookOver(this)
  }

  flushing(upTo: number): void {
    this.simulation.tell(() => `${this.name} flushes up to ${upTo}`)
  }

  appending(entry: Appended): () => void {
    const append: Append = { isDurable: false, isEmpty: this.#isEmpty(entry), now: this.clockRead }
    const { staging } = this.simulation
    const staged = this.#stagedBy(entry)
    const call = this.#callOf(staged)
    if (call !== undefined) call.append = append
    this.simulation.tell(
      () => `${this.name} appends ${entry.number} for ${call?.what ?? `${staged}, to be removed`}`,
    )
    return () => {
      append.isDurable = true
      if (staged !== null && !staging.delete(staged)) staging.add(staged)
      this.simulation.tell(() => `${this.name} has appended ${entry.number}`)
    }
  }

  /** An entry is appended also where nothing changed, or to say again that a call-back is not under way. */
  #isEmpty({ body }: Appended): boolean {
    if (!body.endsWith(TASKS_ALONE)) return false
    return decodeEntry(body).tasks.every(({ taskId, paused, cancelled, sealed, levelBarrier, reruns }) => {
      const task = this.simulation.model.tasks.get(taskId)
      if (task === undefined) return true
      const isSame = task.paused === paused && task.cancelled === cancelled && task.sealed === sealed
      return isSame && task.barrier === levelBarrier && reruns.length === 0
    })
  }

  /** The task whose large call-back an entry opens or closes. */
  #stagedBy({ body }: Appended): string | null {
    const { staging } = this.simulation
    if (staging.size === 0 && !body.includes('{"first":')) return null
    const changed = decodeEntry(body).tasks.find(
      (task) => (task.staging !== null) !== staging.has(task.taskId),
    )
    return changed?.taskId ?? null
  }

  /** Calls have their turn in the order in which they came, but for large call-backs, which go beside them. */
  #callOf(staged: string | null): Call | undefined {
    for (const call of this.calls) if (call.largeTask === staged) return call
    return undefined
  }
}
