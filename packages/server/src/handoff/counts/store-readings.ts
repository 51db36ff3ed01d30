import { inTime } from '../in-time.ts'
import type { InstanceRegister } from '../instance-register.ts'
import { type Store, StoreUnavailable } from '../store.ts'
import { type Backlog, type Choice, readBacklog } from './backlog.ts'
import { type Fleet, readFleet } from './fleet.ts'

export interface StoreReading {
  /** It has just committed something. */
  readonly canCommit: boolean
  /** Null while the store cannot be read. */
  readonly backlog: Backlog | null
  readonly fleet: Fleet | null
}

const AWAY: StoreReading = { canCommit: false, backlog: null, fleet: null }

type ReadStore = Pick<Store, 'probe' | 'tasks'> & Pick<InstanceRegister, 'instances'>

/** Whoever asks has a time limit of its own, ten seconds by custom, and wants to know the rest in any case. */
const PATIENCE_MILLIS = 2000
/** A reading is used again for this many times as long as it took: however often somebody asks, looking stays a small part. */
const KEPT_TIMES = 20
const KEPT_MOST_MILLIS = 10_000

/** How the store is, for those who look from time to time. Those who look at the same time share a reading. */
export class StoreReadings {
  readonly #store: ReadStore
  readonly #failed: (error: unknown) => void
  #reading: Promise<StoreReading> | undefined
  #keptUntil = 0

  constructor(store: ReadStore, failed: (error: unknown) => void) {
    this.#store = store
    this.#failed = failed
  }

  /** Never rejects, and never takes much longer than its patience: a store that does not answer is away. */
  read(): Promise<StoreReading> {
    if (this.#reading === undefined || performance.now() >= this.#keptUntil) {
      this.#keptUntil = Number.POSITIVE_INFINITY
      this.#reading = this.#look()
    }
    return inTime(this.#reading, PATIENCE_MILLIS, () => AWAY)
  }

  /** For whoever wants to know nothing else. */
  async backlog(): Promise<Backlog> {
    const { backlog } = await this.read()
    if (backlog !== null) return backlog
    throw unreadable()
  }

  /** What there is to do, and for whom: all of it from the shared reading, a part of it from one of its own. */
  async workload(choice: Choice | null): Promise<{ backlog: Backlog; fleet: Fleet }> {
    if (choice !== null) {
      const [backlog, fleet] = await Promise.all([readBacklog(this.#store, { choice }), this.#fleet()])
      return { backlog, fleet }
    }
    const { backlog, fleet } = await this.read()
    if (backlog !== null && fleet !== null) return { backlog, fleet }
    throw unreadable()
  }

  #fleet(): Promise<Fleet> {
    return readFleet((query) => this.#store.instances(query))
  }

  async #look(): Promise<StoreReading> {
    const began = performance.now()
    const [probed, backlog, fleet] = await Promise.allSettled([
      this.#store.probe(),
      readBacklog(this.#store),
      this.#fleet(),
    ])
    const now = performance.now()
    this.#keptUntil = now + Math.min((now - began) * KEPT_TIMES, KEPT_MOST_MILLIS)
    for (const one of [probed, backlog, fleet]) {
      if (one.status === 'rejected' && !(one.reason instanceof StoreUnavailable)) this.#failed(one.reason)
    }
    return {
      canCommit: probed.status === 'fulfilled',
      backlog: backlog.status === 'fulfilled' ? backlog.value : null,
      fleet: fleet.status === 'fulfilled' ? fleet.value : null,
    }
  }
}

const unreadable = () =>
  new StoreUnavailable('store_unavailable', 'the tasks could not be added up: the store does not answer')
