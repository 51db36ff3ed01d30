import { MAX_INSTANCE_ATTEMPTS } from '@baton/protocol'
import type { InstanceAttemptDetails } from '../../views/queries.ts'

/** Bounds the memory, about 300 bytes each. The instances that ended an attempt longest ago are dropped first. */
const MOST_KEPT = 100_000

export interface EndedAttemptOf extends InstanceAttemptDetails {
  /** The id of its partition. */
  readonly partition: number
  readonly holder: string
  /** Whether it had expired or was revoked before. */
  readonly isLate: boolean
}

/** Oldest first, and up to twice as many as are listed. */
type ByInstance = Map<string, EndedAttemptOf[]>

/** The last attempts of each instance, since this node leads. */
export class EndedAttempts {
  /** When this node began to lead, possibly again. */
  since: number | null = null
  /** Of instances that ended an attempt lately. When they have half of the most, they replace the older ones. */
  #recent: ByInstance = new Map()
  #older: ByInstance = new Map()
  readonly #most: number
  #recentlyKept = 0

  constructor(most = MOST_KEPT) {
    this.#most = most
  }

  /** An attempt that expired or was revoked before, and is now settled, replaces itself. */
  add(ended: EndedAttemptOf): void {
    const attempts = this.#recent.get(ended.holder) ?? this.#madeRecent(ended.holder)
    this.#recentlyKept -= attempts.length
    if (ended.isLate) remove(attempts, ended)
    attempts.push(ended)
    // Not each time: to remove the first items of an array takes long.
    if (attempts.length >= 2 * MAX_INSTANCE_ATTEMPTS) attempts.splice(0, MAX_INSTANCE_ATTEMPTS)
    this.#recentlyKept += attempts.length
    if (this.#recentlyKept < this.#most / 2) return
    this.#older = this.#recent
    this.#recent = new Map()
    this.#recentlyKept = 0
  }

  #madeRecent(instanceId: string): EndedAttemptOf[] {
    const attempts = this.#older.get(instanceId) ?? []
    this.#older.delete(instanceId)
    this.#recent.set(instanceId, attempts)
    this.#recentlyKept += attempts.length
    return attempts
  }

  /** The last to end first. */
  of(instanceId: string): InstanceAttemptDetails[] {
    const attempts = this.#recent.get(instanceId) ?? this.#older.get(instanceId) ?? []
    return attempts.slice(-MAX_INSTANCE_ATTEMPTS).reverse()
  }
}

function remove(attempts: EndedAttemptOf[], { partition, startedAt }: EndedAttemptOf): void {
  const index = attempts.findIndex((known) => known.partition === partition && known.startedAt === startedAt)
  if (index !== -1) attempts.splice(index, 1)
}
