import type { Disk } from '../disk.ts'
import type { Policy } from '../rules/policy.ts'
import type { Store, StoreViews } from '../store.ts'
import type { Exclusive } from './exclusive.ts'
import type { ChangeLog } from './state/change-log.ts'
import type { EndedAttempts } from './state/ended-attempts.ts'
import type { Memory } from './state/memory.ts'
import { readAudit, readFeed } from './verbs/feed.ts'
import { readGrid } from './verbs/grid-view.ts'
import { heldLeases, type InstanceSource, readInstance, readInstances } from './verbs/instances.ts'
import { readPartitions } from './verbs/partition-views.ts'
import { onlyInMemory, readTable, readTables } from './verbs/tables.ts'
import { readSettings, readTask, readTasks, readTasksById, readThroughput } from './verbs/views.ts'

interface Viewed {
  readonly disk: Disk
  readonly policy: Policy
  /** The name of this node. */
  readonly node: string | undefined
  readonly exclusive: Exclusive
  readonly changeLog: ChangeLog
  readonly endedAttempts: EndedAttempts
}

type EngineViews = StoreViews & Pick<Store, 'changes' | 'instance' | 'instances' | 'activeInstances'>

export function engineViews(parts: Viewed): EngineViews {
  const { disk, policy, node, exclusive, changeLog, endedAttempts } = parts
  const view: Exclusive['view'] = (read) => exclusive.view(read)
  const viewMemory: Exclusive['viewMemory'] = (read) => exclusive.viewMemory(read)
  const leadsSince = () => endedAttempts.since ?? 0
  const instances = (memory: Memory, now: number): InstanceSource => ({
    disk,
    memory,
    policy,
    leader: { node, since: leadsSince() },
    now,
  })
  return {
    task: (taskId) => view((now, memory) => readTask(disk, taskId, now, policy, onlyInMemory(memory))),
    taskSettings: (taskId) => view(() => readSettings(disk, taskId)),
    tasks: (query) => view((now, memory) => readTasks(disk, query, now, policy, onlyInMemory(memory))),
    partitions: (query) => view((_now, memory) => readPartitions(disk, query, onlyInMemory(memory))),
    throughput: (query) => view((now) => readThroughput(disk, query, now)),
    audited: (query) => view(() => readAudit(disk, query)),
    feed: (taskId) => view(() => readFeed(disk, taskId)),
    grid: (query) => view((_now, memory) => readGrid(disk, query, onlyInMemory(memory))),
    changes: (query) =>
      view(async (now, memory) => {
        const { tasks, ...page } = changeLog.page(query)
        return { ...page, now, tasks: await readTasksById(disk, tasks, policy, onlyInMemory(memory), now) }
      }),
    table: (name) => viewMemory((now, { order }) => readTable(order.tables, name, now)),
    tables: (query) => viewMemory((now, { order }) => readTables(order.tables, query, now)),
    instance: (id) => view((now, memory) => readInstance(instances(memory, now), id)),
    instances: (query) => view((now, memory) => readInstances(instances(memory, now), query)),
    activeInstances: ({ activeMillis, limit }) =>
      view((now) => disk.activeInstances(now - activeMillis, limit)),
    instanceLeases: (query) => viewMemory((now, memory) => heldLeases(instances(memory, now), query)),
    instanceAttempts: (instanceId) =>
      viewMemory(() => ({ since: leadsSince(), attempts: endedAttempts.of(instanceId) })),
  }
}
