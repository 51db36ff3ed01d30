import type { InstanceRole, InstanceState, InstanceTotals } from '@baton/protocol'
import type { Stopwatch } from './clock.ts'
import { addTotals, type InstanceRecord, noTotals } from './views/records.ts'

/** What was seen of an instance since it was last written down; totals are increments. */
export interface Heartbeat {
  readonly instanceId: string
  readonly role: InstanceRole
  readonly totals: InstanceTotals
  /** How long ago it was seen first and last since then: a store that several nodes share has a clock of its own. */
  readonly seenMillisAgo: { readonly first: number; readonly last: number }
  /** For a node: what it says of itself. */
  readonly node: { readonly version: string; readonly startedAt: number; readonly draining: boolean } | null
}

/** Heartbeat of a node, and how often what was seen of clients is written down. */
export const HEARTBEAT_INTERVAL_MILLIS = 5000

/** A node whose heartbeat is older is down. */
export const NODE_FRESH_MILLIS = 3 * HEARTBEAT_INTERVAL_MILLIS

/** A client that long-polls shows itself at least once a minute. */
export const CLIENT_FRESH_MILLIS = 90_000

/** Whoever is unseen for so long is forgotten. */
export const FORGET_INSTANCES_MILLIS = 7 * 86_400_000

/** A node that ended in order is not missed. Each start has another name unless it is given one. */
export const FORGET_ENDED_NODES_MILLIS = 3_600_000

export function statusOf(instance: InstanceRecord): InstanceState {
  const unseen = instance.now - instance.lastSeenAt
  if (instance.role === 'service') {
    if (unseen > NODE_FRESH_MILLIS) return 'down'
    return instance.node?.draining === true ? 'draining' : 'up'
  }
  if (instance.leases > 0) return statusOfHolder(instance, unseen)
  return unseen <= CLIENT_FRESH_MILLIS ? 'up' : 'down'
}

/** A worker that renews does so several times before a lease ends. However short the lease, a moment's silence says nothing. */
const SILENT_AFTER = 0.5
const LOST_AFTER = 0.8
const LEAST_SILENCE_MILLIS = 10_000

/** By how much of the time that its leases had left when it was last heard from has passed. */
function statusOfHolder({ leasesEndAt, lastSeenAt }: InstanceRecord, unseen: number): InstanceState {
  if (unseen <= LEAST_SILENCE_MILLIS) return 'up'
  const span = (leasesEndAt ?? lastSeenAt) - lastSeenAt
  if (unseen > span * LOST_AFTER) return 'lost'
  return unseen > span * SILENT_AFTER ? 'silent' : 'up'
}

interface Seen {
  role: InstanceRole
  totals: InstanceTotals
  firstAt: number
  lastAt: number
}

/**
 * Who was seen since the last time it was written down. A fleet of workers makes thousands of
 * requests a second; they cost an addition here and one write per client every few seconds.
 */
export class Heartbeats {
  readonly #seen = new Map<string, Seen>()
  readonly #stopwatch: Stopwatch

  constructor(stopwatch: Stopwatch) {
    this.#stopwatch = stopwatch
  }

  /** Of the instance that is seen now, to add to. */
  totalsOf(instanceId: string, role: InstanceRole): InstanceTotals {
    const now = this.#stopwatch()
    let seen = this.#seen.get(instanceId)
    if (seen === undefined) {
      seen = { role, totals: noTotals(), firstAt: now, lastAt: now }
      this.#seen.set(instanceId, seen)
    }
    seen.role = role
    seen.lastAt = now
    return seen.totals
  }

  /** Takes what is to be written; if the writing fails, `restore` puts it back. */
  take(): { heartbeats: Heartbeat[]; restore: () => void } {
    const now = this.#stopwatch()
    const taken = [...this.#seen]
    this.#seen.clear()
    const heartbeats = taken.map(([instanceId, seen]) => ({
      instanceId,
      role: seen.role,
      totals: seen.totals,
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
      addTotals(since.totals, before.totals)
      since.firstAt = before.firstAt
    }
  }

  /** A stored record brought up to date with what is not written yet. */
  merge(instanceId: string, stored: InstanceRecord | null, now: number): InstanceRecord | null {
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
      leases: 0,
      leasesEndAt: null,
      node: null,
      now,
      tasks: [],
    }
    const totals = { ...base.totals }
    addTotals(totals, seen.totals)
    // Whoever takes the name of a node does not become it.
    if (base.node !== null) return { ...base, totals }
    return {
      ...base,
      role: seen.role,
      lastSeenAt: Math.max(Math.min(base.lastSeenAt, now), lastSeenAt),
      totals,
    }
  }
}

/** A clock that is set back has nobody seen in the future. */
function agoOf({ firstAt, lastAt }: Seen, now: number): Heartbeat['seenMillisAgo'] {
  const ago = (at: number) => Math.max(0, Math.round(now - at))
  return { first: ago(firstAt), last: ago(lastAt) }
}
