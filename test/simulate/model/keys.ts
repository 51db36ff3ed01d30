import type { PulledPartition } from '../../../packages/server/src/handoff/partition.ts'
import type { BatchedPull, PullResult } from '../../../packages/server/src/handoff/store.ts'
import { claim } from './disagreement.ts'

/** A store remembers a key at least this long after the last of its leases expired. */
const KEY_GRACE = 600_000

interface ModelKey {
  readonly leaseIds: readonly string[]
  readonly surelyKnownUntil: number
}

/** The keys of pulls, and the leases that the first pull with each key was given. */
export class ModelKeys {
  readonly all = new Map<string, ModelKey>()

  /** Whether a pull repeats an earlier one. Its answer must then be the first leases that are still valid. */
  isRepeat(
    { key }: BatchedPull,
    { partitions, repeated }: PullResult,
    now: number,
    isAlive: (leaseId: string) => boolean,
  ): boolean {
    const known = key === null ? undefined : this.all.get(key)
    if (known === undefined || (!repeated && now >= known.surelyKnownUntil)) {
      claim(!repeated, `the key ${key} was never recorded`)
      return false
    }
    claim(repeated, `the key ${key} was forgotten too early`)
    const alive = known.leaseIds.filter(isAlive).join()
    const given = partitions.map(({ lease }) => lease?.id).join()
    claim(given === alive, `a repeat of ${key} got ${given}, alive are ${alive}`)
    return true
  }

  /** A pull that was given nothing leaves no key. */
  remember(key: string | null, partitions: readonly Pick<PulledPartition, 'lease'>[]): void {
    if (key === null || partitions.length === 0) return
    const leaseIds = partitions.map(({ lease }) => lease?.id ?? '')
    const lastExpiry = Math.max(...partitions.map(({ lease }) => lease?.expiresAt ?? 0))
    this.all.set(key, { leaseIds, surelyKnownUntil: lastExpiry + KEY_GRACE })
  }
}
