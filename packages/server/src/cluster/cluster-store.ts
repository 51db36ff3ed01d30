import type { Disk } from '../handoff/disk.ts'
import { BATCHING } from '../handoff/engine/shared-batches.ts'
import { type Batching, LeaderUnavailable, type Store } from '../handoff/store.ts'
import type { Leadership } from './leadership.ts'

/** Batches wait for clients that were just answered: an append is a round trip, whatever its size. */
const LED: Batching = { ...BATCHING, waitShare: 0.5 }

const ledVerbs = [
  'handOff',
  'sweep',
  'maintain',
  'control',
  'releaseInstance',
  'setTable',
  'table',
  'tables',
  'releasePartition',
  'pauseInstance',
  'task',
  'taskSettings',
  'tasks',
  'partitions',
  'throughput',
  'audited',
  'feed',
  'grid',
  'changes',
  'subscriptions',
  'deliver',
  'recordHeartbeats',
  'instance',
  'instances',
  'instanceLeases',
  'instanceAttempts',
  'activeInstances',
  'probe',
  'audit',
] as const satisfies readonly (keyof Store)[]
type LedVerb = (typeof ledVerbs)[number]

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

/**
 * The store of one node in a cluster: the engine of this node while it leads. A follower forwards the requests
 * that need it, so its store does only what concerns the node itself.
 */
export function clusterStore({ leadership, disk, now, probeLeader, close }: ClusterStoreParts): Store {
  const whileFollowing: { [Verb in LedVerb]?: Store[Verb] } = {
    sweep: async () => ({ woken: 0, expired: 0, parked: 0, more: false, nextDueInMillis: null }),
    maintain: async () => ({ more: false, readied: 0 }),
    deliver: async () => null,
    recordHeartbeats: (heartbeats) => disk.recordInstances(heartbeats, now()),
    instance: async (instanceId) => {
      const record = await disk.instance(instanceId)
      return record === null ? null : { ...record, leases: 0, silentAfterMillis: null, now: now() }
    },
    probe: probeLeader,
  }
  const run = (verb: LedVerb) => (argument: unknown) => {
    const { engine } = leadership
    const method = (engine === null ? whileFollowing[verb] : engine[verb]) as
      | ((argument: unknown) => Promise<unknown>)
      | undefined
    return method === undefined ? Promise.reject(notLeading()) : method.call(engine, argument)
  }
  const led = Object.fromEntries(ledVerbs.map((verb) => [verb, run(verb)])) as Pick<Store, LedVerb>
  return {
    ...led,
    batching: LED,
    leads: () => leadership.leads,
    onLeadership: (listener) => {
      leadership.onChange = listener
    },
    close: async () => {
      await leadership.stop()
      await close()
    },
  }
}

const notLeading = () => new LeaderUnavailable('this node is no longer the leader; send the request again')
