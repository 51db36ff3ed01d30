import { webhookEventTypes } from '@baton/protocol'
import type { PulledPartition } from '../../src/handoff/partition.ts'
import { type Driver, leaseOf, nameOf, one } from '../store/conformance/driver.ts'
import { DAY, MINUTE } from '../store/conformance/harness.ts'

/** Pseudo-random numbers from a seed: mulberry32. */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const TASKS = ['orders', 'a-b-3', 'näh "x"', 'late', 'old']
const TABLES = ['results.orders', 'results.other', 'a\\b."c"']

/**
 * Randomly does what workers, producers and operators do, and records the answers: the same seed on the same
 * state gives the same answers.
 */
export class RandomLife {
  readonly #driver: Driver
  readonly #random: () => number
  readonly #answers: string[] = []
  #leases: string[] = []
  #keys = 0

  constructor(driver: Driver, seed: number, leases: readonly string[] = []) {
    this.#driver = driver
    this.#random = seeded(seed)
    this.#leases = [...leases]
  }

  get leases(): readonly string[] {
    return this.#leases
  }

  get answers(): readonly string[] {
    return this.#answers
  }

  async live(steps: number): Promise<void> {
    for (let step = 0; step < steps; step += 1) await this.#step()
  }

  /** Adds a subscription and an event for it. */
  async beTold(): Promise<void> {
    for (const url of [null, 'http://receiver.example/hooks?a="b"'])
      await this.#driver.store.subscriptions({
        ask: 'create',
        url,
        types: webhookEventTypes,
        taskPrefix: '',
        secret: 'whsec_"a\\b',
      })
    await this.#driver.callBack('told', [one(0, 0)])
    await this.#driver.control({ verb: 'cancel', taskId: 'told' })
  }

  async #step(): Promise<void> {
    const verbs = [
      ...Array.from({ length: 4 }, () => () => this.#callBack()),
      ...Array.from({ length: 6 }, () => () => this.#pull()),
      ...Array.from({ length: 6 }, () => () => this.#settle()),
      () => this.#renew(),
      () => this.#pass(),
      () => this.#control(),
      () => this.#control(),
      () => this.#see(),
      () => this.#maintain(),
      () => this.#maintain(),
    ]
    const answer = await this.#pick(verbs)()
    this.#answers.push(
      JSON.stringify(answer, (_, value) => (typeof value === 'bigint' ? `${value}n` : value)),
    )
  }

  #pick<One>(from: readonly One[]): One {
    return from[Math.floor(this.#random() * from.length)] as One
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit)
  }

  #callBack() {
    const level = this.#below(3)
    const first = this.#below(30)
    const partitions = Array.from({ length: 1 + this.#below(8) }, (_, at) => {
      // Derived from the index alone, so that a repeat is a duplicate.
      const index = first + at * 2
      return one(level, index, {
        recordCount: (index % 5) * 100,
        computeTableName: TABLES[index % 3] as string,
        spelling: index % 7 === 3 ? `0${index}` : null,
        extraFields: index % 4 === 1 ? `{"snapshot":"s${index}","größe":[${index}]}` : null,
      })
    })
    return this.#driver.callBack(
      this.#pick(TASKS),
      partitions,
      this.#pick([null, 'producer-1', 'producer-2']),
    )
  }

  async #pull() {
    const key = this.#random() < 0.3 ? `key-${this.#keys++ % 7}` : null
    const batch = 1 + this.#below(4)
    const answer = await this.#driver.pull({
      batch,
      key,
      instance: this.#pick([null, 'worker-1', 'worker-2']),
      tables: this.#random() < 0.3 ? [this.#pick(TABLES)] : null,
    })
    const partitions = answer.partitions as readonly PulledPartition[]
    this.#leases.push(...partitions.flatMap(({ lease }) => (lease === null ? [] : [lease.id])))
    return partitions.map((partition) => [nameOf(partition), partition.lease])
  }

  #settle() {
    const at = this.#below(this.#leases.length)
    const [lease] = this.#random() < 0.8 ? this.#leases.splice(at, 1) : this.#leases.slice(at, at + 1)
    if (lease === undefined) return null
    return this.#driver.settle(lease, {
      outcome: this.#pick(['done', 'done', 'failed', 'failed', 'released'] as const),
      reason: this.#pick([null, 'no "disk"\nleft', 'ünreadable']),
      records: this.#pick([null, 100, 7]),
      final: this.#random() < 0.2,
    })
  }

  #renew() {
    if (this.#leases.length === 0) return null
    const checkpoint = this.#pick([undefined, null, 'page "7"', 'größe\n'])
    const lease = leaseOf(this.#pick(this.#leases))
    const leases = [{ ...lease, ...(checkpoint === undefined ? {} : { checkpoint }) }]
    return this.#driver.batch({ renews: [{ leases }] })
  }

  #pass() {
    return this.#driver.pass(this.#pick([1000, MINUTE, 11 * MINUTE]))
  }

  #control() {
    const taskId = this.#pick(TASKS)
    return this.#pick([
      () => this.#driver.control({ verb: 'pause', taskId }),
      () => this.#driver.control({ verb: 'resume', taskId }),
      () => this.#driver.control({ verb: 'resume', taskId }),
      () => this.#driver.control({ verb: 'level-barrier', taskId, enabled: this.#random() < 0.5 }),
      () => this.#driver.control({ verb: 'skip-parked', taskId }),
      () => this.#driver.control({ verb: 'settings', taskId, settings: this.#limits() }),
      () => this.#driver.retry(taskId, { done: this.#random() < 0.5 }),
      () => this.#driver.control({ verb: 'seal', taskId: 'late', expectedPartitions: 12 }),
      () => this.#driver.control({ verb: 'cancel', taskId: 'old' }),
    ])()
  }

  #limits() {
    return { maxLeases: this.#random() < 0.5 ? 1 + this.#below(3) : null }
  }

  #see() {
    const seen = {
      instanceId: this.#pick(['worker-1', 'node-1']),
      pulls: 3,
      seenMillisAgo: { first: 5, last: 1 },
    }
    const node = { version: '0.1.0', startedAt: 1_779_000_000_000, draining: true, load: 12 }
    return this.#driver.store.recordHeartbeats([
      seen.instanceId === 'node-1'
        ? { ...seen, role: 'service', node }
        : { ...seen, role: 'worker', node: null },
    ])
  }

  #maintain() {
    return this.#driver.maintain(this.#random() < 0.5 ? MINUTE : 7 * DAY)
  }
}
