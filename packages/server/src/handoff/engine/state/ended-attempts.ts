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

/** The last attempts of each instance, since this node leads. */
export class EndedAttempts {
  /** When this node began to lead, possibly again. */
  since: number | null = null
  /** Oldest first, and up to twice as many as are listed. */
  readonly #byInstance = new Map<string, EndedAttemptOf[]>()
  readonly #most: number
  #kept = 0
  /** The instance whose attempt ended last: it is at the end of the map. */
  #latest: string | null = null

  constructor(most = MOST_KEPT) {
    this.#most = most
  }

  /** An attempt that expired or was revoked before, and is now settled, replaces itself. */
  add(ended: EndedAttemptOf): void {
    const { holder } = ended
    const attempts = this.#byInstance.get(holder) ?? []
    this.#kept -= attempts.length
    if (ended.isLate) remove(attempts, ended)
    attempts.push(ended)
    // Not each time: to remove the first items of an array takes long.
    if (attempts.length >= 2 * MAX_INSTANCE_ATTEMPTS) attempts.splice(0, MAX_INSTANCE_ATTEMPTS)
    this.#kept += attempts.length
    if (holder !== this.#latest) {
      this.#latest = holder
      this.#byInstance.delete(holder)
      this.#byInstance.set(holder, attempts)
    }
    for (const [oldest, { length }] of this.#byInstance) {
      if (this.#kept <= this.#most || oldest === holder) return
      this.#byInstance.delete(oldest)
      this.#kept -= length
    }
  }

  /** The last to end first. */
  of(instanceId: string): InstanceAttemptDetails[] {
    return this.#byInstance.get(instanceId)?.slice(-MAX_INSTANCE_ATTEMPTS).reverse() ?? []
  }
}

function remove(attempts: EndedAttemptOf[], { partition, startedAt }: EndedAttemptOf): void {
  const index = attempts.findIndex((known) => known.partition === partition && known.startedAt === startedAt)
  if (index !== -1) attempts.splice(index, 1)
}
