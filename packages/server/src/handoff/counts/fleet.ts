import { CLIENT_FRESH_MILLIS, statusOf } from '../heartbeats.ts'
import type { InstancePage, InstanceQuery } from '../views/records.ts'

/** The workers, by whether they hold leases and were seen recently. */
export interface Fleet {
  /** Number of leases by holder, for workers that were seen recently. */
  readonly holders: ReadonlyMap<string, number>
  /** The same for workers that were not seen for most of their lease time. */
  readonly lost: ReadonlyMap<string, number>
  readonly idle: number
  /** False if there are more workers than were read. */
  readonly isComplete: boolean
}

/** The store looks up the leases of every instance, so instances are read in small pages, up to a maximum. */
const INSTANCES_PER_PAGE = 100
export const MOST_WORKERS = 5000

export async function readFleet(
  instances: (query: InstanceQuery) => Promise<InstancePage>,
  { most = MOST_WORKERS, perPage = INSTANCES_PER_PAGE } = {},
): Promise<Fleet> {
  const holders = new Map<string, number>()
  const lost = new Map<string, number>()
  let idle = 0
  let left = most
  let after: string | null = null
  do {
    const limit = Math.min(left, perPage)
    const page: InstancePage = await instances({ after, limit, activeMillis: CLIENT_FRESH_MILLIS })
    for (const instance of page.instances) {
      const { instanceId, role, leases } = instance
      if (role === 'service') continue
      const status = statusOf(instance)
      if (leases > 0) (status === 'lost' ? lost : holders).set(instanceId, leases)
      // A producer never pulls.
      else if (role === 'worker' && status === 'up') idle += 1
    }
    left -= page.instances.length
    after = page.next
  } while (after !== null && left > 0)
  return { holders, lost, idle, isComplete: after === null }
}
