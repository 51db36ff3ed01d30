import type { InstanceRole } from '@baton/protocol'
import type { Stopwatch } from './clock.ts'
import { addCapped } from './rules/task.ts'
import { type InstanceDetails, type NodeDetails, noTotals } from './views/queries.ts'

/** What was seen of an instance since the last write. */
export interface Heartbeat {
  readonly instanceId: string
  readonly role: InstanceRole
  /** The store counts everything else, but no empty pulls. */
  readonly pulls: number
  /** Relative, because a store shared by several nodes has its own clock. */
  readonly seenMillisAgo: { readonly first: number; readonly last: number }
  /** For a node: its own data. */
  readonly node: NodeDetails | null
}

/** The interval of a node's heartbeat, and of writing what was seen of clients. */
export const HEARTBEAT_INTERVAL_MILLIS = 5000

/** The most instances that are noted between two writes. A client that makes up names may send more. */
const MOST_NOTED = 10_000

interface Seen {
  role: InstanceRole
  pulls: number
  firstAt: number
  lastAt: number
}

/** Seen since the last write: a request costs an addition, and a client a write every few seconds. */
export class Heartbeats {
  readonly #seen = new Map<string, Seen>()
  readonly #stopwatch: Stopwatch

  constructor(stopwatch: Stopwatch) {
    this.#stopwatch = stopwatch
  }

  note(instanceId: string, role: InstanceRole, pulls: number): void {
    const now = this.#stopwatch()
    const seen = this.#seen.get(instanceId)
    if (seen !== undefined) {
      seen.role = role
      seen.pulls += pulls
      seen.lastAt = now
    } else if (this.#seen.size < MOST_NOTED)
      this.#seen.set(instanceId, { role, pulls, firstAt: now, lastAt: now })
  }

  get count(): number {
    return this.#seen.size
  }

  /** Takes what is to be written, of at most `most` instances. If the write fails, `restore` puts it back. */
  take(most = MOST_NOTED): { heartbeats: Heartbeat[]; restore: () => void } {
    const now = this.#stopwatch()
    const taken = [...this.#seen].slice(0, most)
    for (const [instanceId] of taken) this.#seen.delete(instanceId)
    const heartbeats = taken.map(([instanceId, seen]) => ({
      instanceId,
      role: seen.role,
      pulls: seen.pulls,
      seenMillisAgo: agoOf(seen, now),
      node: null,
    }))
    const restore = () => {
      for (const [instanceId, seen] of taken) this.#putBack(instanceId, seen)
    }
    return { heartbeats, restore }
  }

  #putBack(instanceId: string, before: Seen): void {
    const since = this.#seen.get(instanceId)
    if (since === undefined) this.#seen.set(instanceId, before)
    else {
      since.pulls += before.pulls
      since.firstAt = before.firstAt
    }
  }

  /** Updates a stored record with what is not written yet. */
  merge(instanceId: string, stored: InstanceDetails | null, now: number): InstanceDetails | null {
    const seen = this.#seen.get(instanceId)
    if (seen === undefined) return stored
    const ago = agoOf(seen, this.#stopwatch())
    const lastSeenAt = now - ago.last
    const base = stored ?? {
      instanceId,
      role: seen.role,
      firstSeenAt: now - ago.first,
      lastSeenAt,
      totals: noTotals(),
      lostUnlessSeenSince: null,
      pausedAt: null,
      leases: 0,
      silentAfterMillis: null,
      leadsSince: null,
      node: null,
      now,
      tasks: [],
    }
    const totals = { ...base.totals, pulls: addCapped(base.totals.pulls, seen.pulls) }
    // A client that uses the name of a node does not replace the node's record.
    if (base.node !== null) return { ...base, totals }
    return {
      ...base,
      role: seen.role,
      lastSeenAt: Math.max(Math.min(base.lastSeenAt, now), lastSeenAt),
      totals,
    }
  }
}

/** Never negative, even if the clock is set back. */
function agoOf({ firstAt, lastAt }: Seen, now: number): Heartbeat['seenMillisAgo'] {
  const ago = (at: number) => Math.max(0, Math.round(now - at))
  return { first: ago(firstAt), last: ago(lastAt) }
}
