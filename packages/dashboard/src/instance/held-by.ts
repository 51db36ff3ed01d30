import type { PartitionRow } from '@baton/protocol'
import { client } from '../service/connection.ts'
import { tasks } from '../service/tasks.ts'

const TASKS_LOOKED_AT = 20
const ROWS_LOOKED_AT = 500
const SHOWN_AT_MOST = 200

/** Looks through what is leased in the tasks that have leases, until all of an instance's are found. */
export async function heldBy(instanceId: string, leases: number): Promise<PartitionRow[]> {
  const found: PartitionRow[] = []
  const leasing = [...tasks.peek().values()].filter(({ partitions }) => partitions.leased > 0)
  for (const { taskId } of leasing.slice(0, TASKS_LOOKED_AT)) {
    if (found.length >= Math.min(leases, SHOWN_AT_MOST)) break
    const { partitions } = await client.peek().partitions(taskId, { state: 'leased', limit: ROWS_LOOKED_AT })
    found.push(...partitions.filter(({ holder }) => holder === instanceId))
  }
  return found.slice(0, SHOWN_AT_MOST)
}
