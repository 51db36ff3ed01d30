import { CLIENT_FRESH_MILLIS, statusOf } from '../heartbeats.ts'
import type { InstancePage, InstanceQuery } from '../views/records.ts'

/** The workers, by whether they hold leases and were heard from. */
export interface Fleet {
  /** Leases by the name of their holder, of those that were heard from. */
  readonly holders: ReadonlyMap<string, number>
  /** The same of those that were not, for most of the time of their leases. */
  readonly lost: ReadonlyMap<string, number>
  readonly idle: number
  /** False: there are more workers than were looked at. */
  readonly isComplete: boolean
}

/** Each costs the store a look at its leases: in short steps, and no more than this. */
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
