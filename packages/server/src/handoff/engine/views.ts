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
import { readTable, readTables } from './verbs/tables.ts'
import { readSettings, readTask, readTasks, readTasksById, readThroughput } from './verbs/task-views.ts'
import { onlyInMemory, type ViewSource } from './verbs/view-source.ts'

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
  const view = <Result>(read: (source: ViewSource) => Promise<Result>): Promise<Result> =>
    exclusive.view((now, memory) => read({ disk, inMemory: onlyInMemory(memory), policy, now }))
  const viewMemory: Exclusive['viewMemory'] = (read) => exclusive.viewMemory(read)
  const leadsSince = () => endedAttempts.since ?? 0
  const viewInstances = <Result>(read: (source: InstanceSource) => Promise<Result>): Promise<Result> =>
    exclusive.view((now, memory) => read(instances(memory, now)))
  const instances = (memory: Memory, now: number): InstanceSource => ({
    disk,
    memory,
    policy,
    leader: { node, since: leadsSince() },
    now,
  })
  return {
    task: (taskId) => view((source) => readTask(source, taskId)),
    taskSettings: (taskId) => view(() => readSettings(disk, taskId)),
    tasks: (query) => view((source) => readTasks(source, query)),
    partitions: (query) => view((source) => readPartitions(source, query)),
    throughput: (query) => view((source) => readThroughput(source, query)),
    audited: (query) => view(() => readAudit(disk, query)),
    feed: (taskId) => view(() => readFeed(disk, taskId)),
    grid: (query) => view((source) => readGrid(source, query)),
    changes: (query) =>
      view(async (source) => {
        const { tasks, ...page } = changeLog.page(query)
        return { ...page, now: source.now, tasks: await readTasksById(source, tasks) }
      }),
    table: (name) => viewMemory((now, { order }) => readTable(order.tables, name, now)),
    tables: (query) => viewMemory((now, { order }) => readTables(order.tables, query, now)),
    instance: (id) => viewInstances((source) => readInstance(source, id)),
    instances: (query) => viewInstances((source) => readInstances(source, query)),
    activeInstances: ({ activeMillis, limit }) =>
      view(({ now }) => disk.activeInstances(now - activeMillis, limit)),
    instanceLeases: (query) => viewMemory((now, memory) => heldLeases(instances(memory, now), query)),
    instanceAttempts: (instanceId) =>
      viewMemory(() => ({ since: leadsSince(), attempts: endedAttempts.of(instanceId) })),
  }
}
