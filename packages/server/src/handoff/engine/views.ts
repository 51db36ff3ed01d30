import type { Store, StoreViews } from '../store.ts'
import type { Exclusive } from './exclusive.ts'
import type { EngineOptions } from './runner.ts'
import type { ChangeLog } from './state/change-log.ts'
import type { EndedAttempts } from './state/ended-attempts.ts'
import type { Memory } from './state/memory.ts'
import { readAudit, readFeed } from './verbs/feed.ts'
import { readGrid } from './verbs/grid-view.ts'
import { heldLeases, readActive, readInstance, readInstances } from './verbs/instances.ts'
import { readPartitions } from './verbs/partition-views.ts'
import { readTable, readTables } from './verbs/tables.ts'
import { readSettings, readTask, readTasks, readTasksById, readThroughput } from './verbs/task-views.ts'
import type { ViewSource } from './verbs/view-source.ts'

interface Viewed extends Pick<EngineOptions, 'disk' | 'policy' | 'node'> {
  readonly exclusive: Exclusive
  readonly changeLog: ChangeLog
  readonly endedAttempts: EndedAttempts
}

type EngineViews = StoreViews & Pick<Store, 'changes' | 'instance' | 'instances' | 'activeInstances'>

export function engineViews(parts: Viewed): EngineViews {
  const { disk, policy, node, exclusive, changeLog, endedAttempts } = parts
  const source = (now: number, memory: Memory): ViewSource => {
    return { disk, memory, policy, leader: { node, since: endedAttempts.since ?? 0 }, now }
  }
  const view = <Result>(read: (source: ViewSource) => Promise<Result>): Promise<Result> =>
    exclusive.view((now, memory) => read(source(now, memory)))
  const viewMemory = <Result>(read: (source: ViewSource) => Result | Promise<Result>): Promise<Result> =>
    exclusive.viewMemory((now, memory) => read(source(now, memory)))
  return {
    task: (taskId) => view((source) => readTask(source, taskId)),
    taskSettings: (taskId) => viewMemory((source) => readSettings(source, taskId)),
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
    table: (name) => viewMemory(({ memory, now }) => readTable(memory.order.tables, name, now)),
    tables: (query) => viewMemory(({ memory, now }) => readTables(memory.order.tables, query, now)),
    instance: (id) => view((source) => readInstance(source, id)),
    instances: (query) => view((source) => readInstances(source, query)),
    activeInstances: (query) => view((source) => readActive(source, query)),
    instanceLeases: (query) => viewMemory((source) => heldLeases(source, query)),
    instanceAttempts: (instanceId) =>
      viewMemory(({ leader }) => ({ since: leader.since, attempts: endedAttempts.of(instanceId) })),
  }
}
