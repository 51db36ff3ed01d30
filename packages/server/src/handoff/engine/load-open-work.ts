import type { Disk } from '../disk.ts'
import type { Memory } from './state/memory.ts'
import { positionOf } from './state/waiting-buffer.ts'

const ROWS_AT_A_TIME = 5000

/** All open work. A disk may read synchronously, so other work runs between two pages. */
export async function loadOpenWork(
  disk: Disk,
  memory: Memory,
  nextIteration: () => Promise<void>,
): Promise<void> {
  for (const row of await disk.outbox.subscriptions()) memory.subscriptions.set(row.id, row)
  for (const { instanceId, pausedAt } of await disk.pausedInstances())
    memory.pausedInstances.set(instanceId, pausedAt)
  for (const level of await disk.levels()) memory.addLevel(level)
  for (const row of await disk.tableSettings()) memory.order.tables.setSettings(row)
  for (let after = 0, isEnd = false; !isEnd; ) {
    const tasks = await disk.openTasks(after, ROWS_AT_A_TIME)
    for (const task of tasks) memory.addTask(task)
    after = tasks.at(-1)?.id ?? after
    isEnd = tasks.length < ROWS_AT_A_TIME
    if (!isEnd) await nextIteration()
  }
  for (let after = 0, isEnd = false; !isEnd; ) {
    const { lanes, tables } = await disk.lanesWithWork(after, ROWS_AT_A_TIME)
    // What waits in a cancelled task is not open work.
    const isOpen = ({ task, partitions: { leased, delayed } }: (typeof lanes)[number]) =>
      leased + delayed > 0 || memory.tasks.get(task)?.cancelled === false
    memory.addLanes({ lanes: lanes.filter(isOpen), tables })
    after = lanes.at(-1)?.id ?? after
    isEnd = lanes.length < ROWS_AT_A_TIME
    if (!isEnd) await nextIteration()
  }
  for (let after = { dueAt: 0, id: 0 }, isEnd = false; !isEnd; ) {
    const leases = await disk.leases(after, ROWS_AT_A_TIME)
    // A lease without its lane was written by a node that has become leader. This node's append will fail.
    for (const lease of leases) if (memory.lanes.has(lease.lane)) memory.addPartition(lease)
    const last = leases.at(-1)
    if (last !== undefined) after = positionOf(last)
    isEnd = leases.length < ROWS_AT_A_TIME
    if (!isEnd) await nextIteration()
  }
}
