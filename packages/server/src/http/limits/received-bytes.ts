import type { ReachedLimits } from './limits.ts'

/** The share of one request body in the memory limit of the node. */
export interface BodyHold {
  /** Returns false when the limit is reached and the body must be refused. */
  add(bytes: number): boolean
  /** Called when the body is complete: it is no longer evicted in favour of others. */
  arrived(): void
  /** Keeps the bytes counted until one more `release`, even if the connection closes. */
  retain(): void
  release(): void
}

interface ArrivingBody {
  readonly address: string | undefined
  readonly giveUp: () => void
  readonly beganAt: number
  bytes: number
}

/** Reserves capacity for renews and settles, without which workers lose their leases. */
const URGENT_SHARE = 1.25
/** Frees somewhat more than needed, so that not every chunk has to evict another body. */
const MADE_ROOM_SHARE = 0.95

/**
 * Limits the bytes of request bodies in memory that are not answered yet. It counts received bytes, not
 * announced ones. Over the limit, bodies that are still arriving are refused, starting with those that have
 * held the most memory for the longest time.
 */
export class ReceivedBytes {
  readonly #limit: number
  readonly #reached: ReachedLimits
  readonly #arriving = new Set<ArrivingBody>()
  #held = 0

  constructor(limitBytes: number, reached: ReachedLimits) {
    this.#limit = limitBytes
    this.#reached = reached
  }

  get held(): number {
    return this.#held
  }

  /** `giveUp` is called when the body is evicted before it has arrived completely. */
  hold(isUrgent: boolean, address: string | undefined, giveUp: () => void): BodyHold {
    const limit = isUrgent ? this.#limit * URGENT_SHARE : this.#limit
    const body: ArrivingBody = { address, giveUp, beganAt: performance.now(), bytes: 0 }
    let holders = 1
    this.#arriving.add(body)
    return {
      add: (bytes) => {
        body.bytes += bytes
        this.#held += bytes
        return this.#held <= limit || this.#makeRoom(body, limit)
      },
      arrived: () => this.#arriving.delete(body),
      retain: () => {
        holders += 1
      },
      release: () => {
        holders -= 1
        if (holders > 0) return
        this.#held -= body.bytes
        this.#arriving.delete(body)
      },
    }
  }

  /** Whether `bytes` more fit below the limit. */
  hasRoomFor(bytes: number): boolean {
    return this.#held + bytes <= this.#limit
  }

  keep(bytes: number): void {
    this.#held += bytes
  }

  /** Evicts other bodies; returns whether `newest` fits now. */
  #makeRoom(newest: ArrivingBody, limit: number): boolean {
    const now = performance.now()
    const costly = [...this.#arriving].sort((a, b) => costAt(b, now) - costAt(a, now))
    for (const body of costly) {
      if (this.#held <= limit * MADE_ROOM_SHARE || body === newest) break
      this.#reached.note('received-bytes', body.address)
      body.giveUp()
    }
    if (this.#held <= limit) return true
    this.#reached.note('received-bytes', newest.address)
    return false
  }
}

/** Memory multiplied by the time for which it was held. */
const costAt = ({ bytes, beganAt }: ArrivingBody, now: number): number => bytes * (now - beganAt)
