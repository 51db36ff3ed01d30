import type { ClientLimits, ReachedLimits } from './limits.ts'

type Limits = Pick<ClientLimits, 'waitingPulls' | 'waitingPullsPerCaller'>

/** For queries of waiting pulls. One names up to 100 tables and tasks, and takes five times its length. */
const MOST_QUERY_BYTES = 16 * 2 ** 20
const MOST_QUERY_BYTES_PER_CALLER = MOST_QUERY_BYTES / 4

/** What waits under a quota key. */
interface Share {
  pulls: number
  queryBytes: number
}

interface WaitWanted {
  readonly waitMillis: number
  readonly queryBytes: number
  readonly quotaKeyOf: () => string
}

/** Limits the pulls that wait, also per quota key, so that no token or address uses the whole capacity. */
export class WaitQuota {
  readonly #limits: Limits
  readonly #waiting: () => number
  readonly #reached: ReachedLimits
  readonly #byKey = new Map<string, Share>()
  #queryBytes = 0

  /** `waiting` returns the number of pulls that wait on this node. */
  constructor(limits: Limits, waiting: () => number, reached: ReachedLimits) {
    this.#limits = limits
    this.#waiting = waiting
    this.#reached = reached
  }

  /** Runs a pull that asks to wait; without waiting if too many pulls wait already. */
  within<Result>(
    { waitMillis, queryBytes, quotaKeyOf }: WaitWanted,
    pull: (waitMillis: number) => Promise<Result>,
  ): Promise<Result> {
    const key = quotaKeyOf()
    const share = this.#byKey.get(key) ?? { pulls: 0, queryBytes: 0 }
    const limit = this.#limitFor(share, queryBytes)
    if (limit !== undefined) {
      this.#reached.note(limit)
      return pull(0)
    }
    const count = (pulls: number, bytes: number) => {
      share.pulls += pulls
      share.queryBytes += bytes
      this.#queryBytes += bytes
      if (share.pulls === 0) this.#byKey.delete(key)
      else this.#byKey.set(key, share)
    }
    count(1, queryBytes)
    return pull(waitMillis).finally(() => count(-1, -queryBytes))
  }

  #limitFor(share: Share, bytes: number): 'caller-waiting-pulls' | 'waiting-pulls' | undefined {
    const { waitingPulls, waitingPullsPerCaller } = this.#limits
    const isOver = (held: number, most: number) => bytes > 0 && held + bytes > most
    if (share.pulls >= waitingPullsPerCaller || isOver(share.queryBytes, MOST_QUERY_BYTES_PER_CALLER))
      return 'caller-waiting-pulls'
    if (this.#waiting() >= waitingPulls || isOver(this.#queryBytes, MOST_QUERY_BYTES)) return 'waiting-pulls'
    return undefined
  }
}
