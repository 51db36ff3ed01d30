import type { Disk } from '../handoff/disk.ts'
import { eachVerb, NotLeader, runVerb, type Store, type StoreVerb } from '../handoff/store.ts'
import type { Leadership } from './leadership.ts'

/** Batches wait for clients that were just answered: an append is a round trip, whatever its size. */
const WAIT_SHARE = 0.5

interface ClusterStoreParts {
  readonly leadership: Leadership
  /** Where a follower records itself. */
  readonly disk: Pick<Disk, 'recordInstances' | 'instance'>
  /** The database's clock. */
  now(): number
  /** Rejects if the leader is not ready. */
  probeLeader(): Promise<void>
  close(): Promise<void>
}

/** The engine while this node leads. A follower forwards what needs it, and does what concerns itself. */
export function clusterStore({ leadership, disk, now, probeLeader, close }: ClusterStoreParts): Store {
  const whileFollowing: Partial<Pick<Store, StoreVerb>> = {
    sweep: async () => ({ woken: 0, expired: 0, parked: 0, more: false, nextDueInMillis: null }),
    maintain: async () => ({ more: false, newlyReady: 0 }),
    deliver: async () => null,
    recordHeartbeats: (heartbeats) => disk.recordInstances(heartbeats, now()),
    instance: async (instanceId) => {
      const record = await disk.instance(instanceId)
      return record === null
        ? null
        : { ...record, leases: 0, silentAfterMillis: null, leadsSince: null, now: now() }
    },
    probe: probeLeader,
  }
  const verbs = eachVerb((verb) => async (argument) => {
    const { engine } = leadership
    if (engine !== null) return runVerb(engine, verb, argument)
    const follow = whileFollowing[verb] as ((argument: never) => Promise<unknown>) | undefined
    if (follow === undefined) throw new NotLeader()
    return follow(argument)
  })
  return {
    ...verbs,
    runsAlone: (callBack) => leadership.engine?.runsAlone(callBack) ?? false,
    close: async () => {
      await leadership.stop()
      await close()
    },
    cluster: {
      waitShare: WAIT_SHARE,
      leads: () => leadership.leads,
      onLeadership: (listener) => {
        leadership.onChange = listener
      },
    },
  }
}
