import type { Disk } from '../disk.ts'
import type { Policy } from '../rules/policy.ts'
import type { Store, StoreViews } from '../store.ts'
import type { Exclusive } from './exclusive.ts'
import type { ChangeLog } from './state/change-log.ts'
import type { EndedAttempts } from './state/ended-attempts.ts'
import type { Memory } from './state/memory.ts'
import { viewAudit, viewFeed } from './verbs/feed.ts'
import { viewGrid } from './verbs/grid-view.ts'
import { heldLeases, type InstanceSource, viewInstance, viewInstances } from './verbs/instances.ts'
import { viewPartitions } from './verbs/partition-views.ts'
import { onlyInMemory, viewTable, viewTables } from './verbs/tables.ts'
import { viewSettings, viewTask, viewTasks, viewTasksById, viewThroughput } from './verbs/views.ts'

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
    task: (taskId) => view((now, memory) => viewTask(disk, taskId, now, policy, onlyInMemory(memory))),
    taskSettings: (taskId) => view(() => viewSettings(disk, taskId)),
    tasks: (query) => view((now, memory) => viewTasks(disk, query, now, policy, onlyInMemory(memory))),
    partitions: (query) => view((_now, memory) => viewPartitions(disk, query, onlyInMemory(memory))),
    throughput: (query) => view((now) => viewThroughput(disk, query, now)),
    audited: (query) => view(() => viewAudit(disk, query)),
    feed: (taskId) => view(() => viewFeed(disk, taskId)),
    grid: (query) => view((_now, memory) => viewGrid(disk, query, onlyInMemory(memory))),
    changes: (query) =>
      view(async (now, memory) => {
        const { tasks, ...page } = changeLog.page(query)
        return { ...page, now, tasks: await viewTasksById(disk, tasks, policy, onlyInMemory(memory), now) }
      }),
    table: (name) => viewMemory((now, { order }) => viewTable(order.tables, name, now)),
    tables: (query) => viewMemory((now, { order }) => viewTables(order.tables, query, now)),
    instance: (id) => view((now, memory) => viewInstance(instances(memory, now), id)),
    instances: (query) => view((now, memory) => viewInstances(instances(memory, now), query)),
    activeInstances: ({ activeMillis, limit }) =>
      view((now) => disk.activeInstances(now - activeMillis, limit)),
    instanceLeases: (query) => viewMemory((now, memory) => heldLeases(instances(memory, now), query)),
    instanceAttempts: (instanceId) =>
      viewMemory(() => ({ since: leadsSince(), attempts: endedAttempts.of(instanceId) })),
  }
}
