import { type Location, withSource } from '../../src/archive/stores.ts'
import { openPostgresDisk } from '../../src/disk/postgres/postgres-disk.ts'
import { openSqliteDisk } from '../../src/disk/sqlite/sqlite-disk.ts'
import { openEngine } from '../../src/handoff/engine/engine-store.ts'
import type { InstanceDetails } from '../../src/handoff/views/queries.ts'
import { Driver } from '../store/conformance/driver.ts'
import { TestClock, testPolicy } from '../store/conformance/harness.ts'
import { seeded } from './random-states.ts'

/**
 * A store with time and randomness controlled by the test: opened on the same data, it answers identically.
 */
export async function openAt(location: Location, now: number): Promise<Driver> {
  const clock = new TestClock()
  clock.advance(now - clock.now())
  const disk =
    'data' in location
      ? await openSqliteDisk({ folder: location.data })
      : await openPostgresDisk({ url: location.databaseUrl, node: { nodeId: 'test', url: '' } })
  let secrets = 0
  const secret = () => `${now}-${secrets++}`.padStart(16, '_').slice(-16)
  const store = await openEngine({ disk, policy: testPolicy, clock: clock.now, random: seeded(now), secret })
  return new Driver({ store, reopen: async () => {}, dispose: () => store.close() }, clock)
}

export const startOfTests = new TestClock().now()

/** Every row of every kind, field by field. */
export function rowsIn(location: Location): Promise<Record<string, unknown>> {
  return withSource(location, async (source) => {
    const rows: Record<string, unknown[]> = {}
    for await (const batch of source.batches())
      rows[batch.section] = [...(rows[batch.section] ?? []), ...batch.rows]
    return { ...rows, nextIds: source.nextIds, counts: source.counts }
  })
}

/** All views, but for the pace, which is in memory only. */
export async function viewsOf({ store }: Driver): Promise<unknown> {
  const { tasks } = await store.tasks({ state: null, parked: false, before: null, limit: 100, search: null })
  const { instances: listed } = await store.instances({ after: null, limit: 100 })
  const instances = await Promise.all(listed.map(({ instanceId }) => store.instance(instanceId)))
  const ids = tasks.map(({ facts }) => facts.taskId)
  const details = await Promise.all(ids.map(async (id) => ({ ...(await store.task(id)), pace: null })))
  const partitions = await Promise.all(
    ids.map((taskId) => store.partitions({ taskId, state: null, level: null, after: null, limit: 1000 })),
  )
  return {
    tasks: tasks.map((task) => ({ ...task, pace: null })),
    details,
    partitions,
    instances: instances.flatMap((one) => (one === null ? [] : [withOrderedTasks(one)])),
  }
}

/** The order of tasks that were called back at the same time is undefined. */
function withOrderedTasks(instance: InstanceDetails): InstanceDetails {
  const tasks = (instance.tasks ?? []).toSorted(
    (a, b) => b.lastCallBackAt - a.lastCallBackAt || (a.taskId < b.taskId ? -1 : 1),
  )
  return { ...instance, tasks }
}
