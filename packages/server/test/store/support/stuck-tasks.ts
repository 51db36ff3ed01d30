import type { Store } from '../../../src/handoff/store.ts'
import { type Driver, one } from '../conformance/driver.ts'

/** One task that only an operator can move, and some that look like it; the store has a level barrier for all. */
export async function leaveStuckTasks(store: Driver): Promise<void> {
  const park = async () => store.settle((await store.pullOne()).leaseId, { outcome: 'failed', final: true })
  await store.callBack('stuck', [one(0, 0), one(1, 0)])
  await park()
  await store.callBack('passed', [one(0, 0), one(1, 0)])
  await park()
  await store.control({ verb: 'skip-parked', taskId: 'passed' })
  await store.callBack('leased', [one(0, 0), one(0, 1), one(1, 0)])
  await park()
  await store.pullOne()
  await store.callBack('ready', [one(0, 0), one(0, 1), one(1, 0)])
  await park()
}

export async function stalledOf(store: Store): Promise<string[]> {
  const { tasks } = await store.tasks({
    state: 'stalled',
    parked: false,
    before: null,
    limit: 10,
    search: null,
  })
  return tasks.map(({ facts }) => facts.taskId)
}
