import type { TaskView } from '@baton/protocol'
import type { Route } from '../route.ts'

/** How many partitions a filter leaves, from the counters: nothing has to be walked for it. */
export function matchingCount(view: TaskView, { state, level }: Extract<Route, { page: 'task' }>): number {
  const counts = level === null ? view.partitions : view.levels.find((one) => one.level === level)?.partitions
  return counts?.[state ?? 'total'] ?? 0
}
