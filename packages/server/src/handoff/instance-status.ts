import type { InstanceState } from '@baton/protocol'
import { HEARTBEAT_INTERVAL_MILLIS } from './heartbeats.ts'
import { SILENT_SHARE } from './rules/policy.ts'
import type { InstanceDetails } from './views/queries.ts'

/** A node whose heartbeat is older is down. */
export const NODE_FRESH_MILLIS = 3 * HEARTBEAT_INTERVAL_MILLIS

/** A client that long-polls sends a request at least once a minute. */
export const CLIENT_FRESH_MILLIS = 90_000

export function statusOf(instance: InstanceDetails): InstanceState {
  const unseen = instance.now - instance.lastSeenAt
  if (instance.role === 'service') {
    if (unseen > NODE_FRESH_MILLIS) return 'down'
    return instance.node?.draining === true ? 'draining' : 'up'
  }
  const { leases, silentAfterMillis, lostUnlessSeenSince, lastSeenAt } = instance
  if (lostUnlessSeenSince !== null && lastSeenAt < lostUnlessSeenSince) return 'lost'
  if (silentAfterMillis !== null && unseen >= silentAfterMillis) return 'silent'
  return leases > 0 || unseen <= CLIENT_FRESH_MILLIS ? 'up' : 'down'
}

/** How long the holder of a lease of this length may send nothing before it is silent. */
export const silenceAllowed = (leaseMillis: number): number => Math.floor(leaseMillis * SILENT_SHARE)
