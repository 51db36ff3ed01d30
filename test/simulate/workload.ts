import type { CalledBackPartition } from '@baton/protocol'
import { type LeaseRef, parseLeaseId } from '../../packages/server/src/handoff/lease-id.ts'
import type { ControlRequest } from '../../packages/server/src/handoff/rules/control.ts'
import type { TaskSettingsChange } from '../../packages/server/src/handoff/rules/policy.ts'
import type {
  BatchedCallBack,
  BatchedPull,
  BatchedRenew,
  BatchedSettle,
  HandOffAnswers,
  HandOffBatch,
  PartitionRef,
  PauseRequest,
  RevokeRequest,
  TableChange,
} from '../../packages/server/src/handoff/store.ts'
import type { Chance } from '../chaos/support/chance.ts'

/**
 * The parameters of one simulation. They vary between simulations, so that rare conditions coincide in some.
 */
interface Habits {
  /** The maximum in one batch. */
  readonly requests: number
  readonly tasks: number
  readonly levels: number
  readonly indexes: number
  readonly largeCallBacks: number
  readonly keys: number
  readonly repeats: number
  readonly batch: number
  readonly undos: number
  readonly renews: number
  readonly careless: number
  /** How often a lease is settled as failed or released. If nearly always, partitions have many attempts. */
  readonly returned: number
  /** How many tables there are; 0: one for each level. */
  readonly tables: number
  /** How often a pull names tables. */
  readonly filters: number
  /** How often a renewal or a settlement gives a checkpoint. */
  readonly checkpoints: number
}

const RECORDS = [0, 1, 50, 100, 100, 1000]
const RETURNS = ['failed', 'released', 'released'] as const
export const WORKERS = ['w1', 'w2', 'w3']
const PULLERS = [null, ...WORKERS]
const CHECKPOINTS = ['page 1', 'page 2', 'page 3', null]
const PAUSES = [{ share: 1, of: 1 }, { share: 0.5, of: 4 }, { share: 0.7, of: 10 }, null]
const LEASES_REMEMBERED = 150
const KEYS_REMEMBERED = 8

/**
 * The requests of producers, workers and operators. It records the answers and also repeats earlier requests.
 */
export class Workload {
  readonly #chance: Chance
  readonly #chanceOfCheckpoints: Chance
  readonly #habits: Habits
  readonly #leases: LeaseRef[] = []
  readonly #keys: string[] = []
  #keysMade = 0
  #tasksMade = 0

  constructor(chance: Chance) {
    this.#chance = chance
    this.#chanceOfCheckpoints = chance.for('checkpoints')
    const { tasks, levels } = { tasks: chance.pick([2, 4, 8]), levels: chance.pick([1, 2, 3, 6]) }
    this.#habits = {
      requests: chance.pick([2, 8, 24]),
      tasks,
      levels,
      indexes: chance.pick([8, 40, 200]),
      largeCallBacks: chance.pick([0, 0.05, 0.2]),
      keys: chance.pick([0.1, 0.5, 0.9]),
      repeats: chance.pick([0.05, 0.3]),
      batch: chance.pick([1, 5, 30]),
      undos: chance.pick([0, 0.1]),
      renews: chance.pick([0.02, 0.2]),
      careless: chance.pick([0.02, 0.2]),
      tables: chance.pick([0, 1, 2, 5]),
      filters: chance.pick([0, 0.2, 0.7]),
      returned: chance.pick([0.4, 0.4, 0.4, 0.95]),
      checkpoints: this.#chanceOfCheckpoints.pick([0, 0.1, 0.5]),
    }
    this.#tasksMade = tasks
  }

  /** The requests that arrive together at a node. */
  batch(): HandOffBatch {
    const chance = this.#chance
    const batch = { ...emptyBatch(), pulls: [] as BatchedPull[] }
    for (let left = chance.between(1, this.#habits.requests); left > 0; left -= 1) {
      const drawn = chance.below(100)
      if (drawn < 12) batch.callBacks.push(this.callBack(chance.between(1, 6)))
      else if (drawn < 50) batch.pulls.push(this.#pull())
      else if (drawn < 90 && this.#leases.length > 0) batch.settles.push(this.#settle())
      else if (chance.happens(this.#habits.renews)) batch.renews.push(this.#renew())
      else if (chance.happens(this.#habits.undos)) batch.undos.push(...this.#some())
    }
    return batch
  }

  isLarge(): boolean {
    return this.#chance.happens(this.#habits.largeCallBacks)
  }

  /**
   * Mostly runs of consecutive indexes, of a few levels. The content follows from level and index, unless it
   * is to contradict.
   */
  callBack(count: number): BatchedCallBack {
    const chance = this.#chance
    const taskId = this.#task()
    const { levels, indexes } = this.#habits
    const places = new Map<number, CalledBackPartition>()
    const contradicts = chance.happens(0.02)
    while (places.size < count) {
      const level = chance.below(levels)
      const first = chance.below(indexes)
      for (let at = 0; at < Math.min(count - places.size, chance.between(1, count)); at += 1) {
        const index = first + at
        const recordCount = (RECORDS[(index * 7 + level) % RECORDS.length] ?? 0) + (contradicts ? 1 : 0)
        places.set(level * 10_000 + index, {
          level,
          index,
          recordCount,
          computeTableName: this.#tableOf(level, index),
          spelling: null,
        })
      }
      // If there are few free indexes, they are soon taken.
      if (chance.happens(0.3)) break
    }
    const partitions = [...places.values()].sort((a, b) => a.level - b.level)
    const recordTotal = partitions.reduce((sum, partition) => sum + partition.recordCount, 0)
    return { callBack: { taskId, recordTotal, partitions }, producer: chance.pick([null, 'p1', 'p2']) }
  }

  control(): ControlRequest {
    const chance = this.#chance
    const taskId = this.#task()
    const { levels, indexes } = this.#habits
    const drawn = chance.below(100)
    if (drawn < 18) return { verb: 'pause', taskId }
    if (drawn < 48) return { verb: 'resume', taskId }
    if (drawn < 52) return { verb: 'cancel', taskId }
    if (drawn < 56) return { verb: 'seal', taskId, expectedPartitions: null }
    if (drawn < 66) return { verb: 'level-barrier', taskId, enabled: chance.happens(0.5) }
    if (drawn < 76) return { verb: 'skip-parked', taskId }
    if (drawn < 84) return { verb: 'settings', taskId, settings: this.#settings() }
    const named = chance.happens(0.3) ? [{ level: chance.below(levels), index: chance.below(indexes) }] : null
    const level = chance.happens(0.3) ? chance.below(levels) : null
    return { verb: 'retry', taskId, level, partitions: named, done: chance.happens(0.3) }
  }

  #settings(): TaskSettingsChange {
    const chance = this.#chance
    return {
      ...(chance.happens(0.5) ? { maxLeases: chance.pick([1, 2, 3, 4, 5, null, null, null]) } : {}),
      ...(chance.happens(0.5) ? { weight: chance.pick([0.1, 0.5, 2, 7, null, null]) } : {}),
      ...(chance.happens(0.3) ? { maxAttempts: chance.pick([1, 2, 3, 4, 6, 8, null, null, null]) } : {}),
    }
  }

  /** When a task pauses itself. */
  selfPause(chance: Chance): ControlRequest {
    const { tasks } = this.#habits
    const taskId = `t${this.#tasksMade - chance.below(tasks)}`
    return { verb: 'settings', taskId, settings: { pauseAfterFailures: chance.pick(PAUSES) } }
  }

  release(): RevokeRequest {
    return { instanceId: this.#chance.pick(WORKERS), limit: this.#chance.pick([1, 5, 1000]) }
  }

  tableChange(chance: Chance): TableChange {
    return {
      table: this.#table(chance),
      ...(chance.happens(0.6) ? { maxLeases: chance.pick([1, 1, 2, 5, null, null]) } : {}),
      ...(chance.happens(0.6) ? { paused: chance.happens(0.4) } : {}),
    }
  }

  pause(chance: Chance): PauseRequest {
    return { instanceId: chance.pick(WORKERS), role: 'worker', paused: chance.happens(0.4) }
  }

  partition(chance: Chance): PartitionRef {
    const { tasks, levels, indexes } = this.#habits
    const taskId = `t${this.#tasksMade - chance.below(tasks)}`
    return { taskId, level: chance.below(levels), index: chance.below(indexes) }
  }

  tables(): string[] {
    const { levels, tables } = this.#habits
    return tables === 0
      ? Array.from({ length: levels }, (_, level) => `r.l${level}`)
      : Array.from({ length: tables }, (_, at) => `r.t${at}`)
  }

  /** The answer reached its client. */
  answered(answers: HandOffAnswers): void {
    for (const { partitions } of answers.pulls)
      for (const { lease } of partitions) {
        const ref = lease === null ? undefined : parseLeaseId(lease.id)
        if (ref === undefined) continue
        if (this.#leases.length < LEASES_REMEMBERED) this.#leases.push(ref)
        else this.#leases[this.#chance.below(LEASES_REMEMBERED)] = ref
      }
  }

  /** Occasionally replaces an old task by a new one. */
  #task(): string {
    const chance = this.#chance
    if (chance.happens(0.01)) this.#tasksMade += 1
    return `t${this.#tasksMade - chance.below(this.#habits.tasks)}`
  }

  #pull(): BatchedPull {
    const chance = this.#chance
    return {
      instance: chance.pick(PULLERS),
      batch: chance.happens(0.5) ? 1 : chance.between(1, this.#habits.batch),
      records: chance.happens(0.2) ? chance.pick([0, 150, 1000]) : null,
      key: chance.happens(this.#habits.keys) ? this.#key() : null,
      ...this.#filter(),
    }
  }

  /** Derived from level and index. In some simulations a lane has several tables. */
  #tableOf(level: number, index: number): string {
    const { tables } = this.#habits
    return tables === 0 ? `r.l${level}` : `r.t${(index * 5 + level) % tables}`
  }

  #table(chance: Chance): string {
    const { levels, tables } = this.#habits
    return tables === 0 ? `r.l${chance.below(levels)}` : `r.t${chance.below(tables)}`
  }

  #filter(): Pick<BatchedPull, 'tables' | 'tasks'> {
    const chance = this.#chance
    const { filters } = this.#habits
    const table = () => this.#table(chance)
    const some = (name: () => string) => {
      const names: string[] = []
      for (let left = chance.between(1, 3); left > 0; left -= 1) {
        const one = name()
        if (!names.includes(one)) names.push(one)
      }
      return names
    }
    return {
      tables: chance.happens(filters) ? some(table) : null,
      tasks: chance.happens(filters / 2) ? some(() => this.#task()) : null,
    }
  }

  #key(): string {
    const chance = this.#chance
    if (this.#keys.length > 0 && chance.happens(this.#habits.repeats)) return chance.pick(this.#keys)
    this.#keysMade += 1
    const key = `k${this.#keysMade}`
    if (this.#keys.length < KEYS_REMEMBERED) this.#keys.push(key)
    else this.#keys[chance.below(KEYS_REMEMBERED)] = key
    return key
  }

  #settle(): BatchedSettle {
    const chance = this.#chance
    const { returned } = this.#habits
    const settlements = this.#some().map((lease) => ({
      lease,
      reported: {
        outcome: chance.happens(returned) ? chance.pick(RETURNS) : ('done' as const),
        reason: chance.pick([null, 'no space', 'no answer']),
        retryAfterMillis: chance.happens(returned / 2) ? chance.pick([0, 0, 300]) : null,
        final: chance.happens(0.1),
        records: chance.happens(0.3) ? 100 : null,
        ...this.#checkpoint(),
      },
    }))
    return { instance: null, settlements }
  }

  #renew(): BatchedRenew {
    return { leases: this.#some().map((lease) => ({ ...lease, ...this.#checkpoint() })) }
  }

  #checkpoint(): { checkpoint?: string | null } {
    const chance = this.#chanceOfCheckpoints
    return chance.happens(this.#habits.checkpoints) ? { checkpoint: chance.pick(CHECKPOINTS) } : {}
  }

  /** Leases are mostly settled once. Careless workers settle them again, or send wrong ids. */
  #some(): LeaseRef[] {
    const chance = this.#chance
    const { careless, batch } = this.#habits
    const found: LeaseRef[] = []
    for (let left = chance.between(1, Math.min(batch, 6)); left > 0 && this.#leases.length > 0; left -= 1) {
      const at = chance.below(this.#leases.length)
      const lease = this.#leases[at] as LeaseRef
      if (!chance.happens(careless)) {
        this.#leases[at] = this.#leases.at(-1) as LeaseRef
        this.#leases.pop()
      } else if (chance.happens(0.1)) {
        found.push({ ...lease, secret: 'A'.repeat(16) })
        continue
      }
      if (!found.some(({ partition }) => partition === lease.partition)) found.push(lease)
    }
    return found
  }
}

export const emptyBatch = () => ({
  settles: [] as BatchedSettle[],
  renews: [] as BatchedRenew[],
  undos: [] as LeaseRef[],
  callBacks: [] as BatchedCallBack[],
  pulls: [] as BatchedPull[],
})
