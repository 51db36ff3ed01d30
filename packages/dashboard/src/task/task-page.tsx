import type { TaskView } from '@baton/protocol'
import { TaskBadge } from '../parts/badge.tsx'
import { Empty, Skeleton } from '../parts/empty.tsx'
import { LevelBar } from '../parts/level-bar.tsx'
import { Legend, measureOf } from '../parts/split-bar.tsx'
import { hrefOf, overviewRoute, type Route } from '../route.ts'
import { Findings } from './findings.tsx'
import { LevelTable } from './level-table.tsx'
import { PartitionPanel } from './partition-panel.tsx'
import { TaskActions } from './task-actions.tsx'
import { TaskFacts } from './task-facts.tsx'
import { useTask } from './task-state.ts'
import { ThroughputPanel } from './throughput-panel.tsx'

export function TaskPage({ at }: { at: Extract<Route, { page: 'task' }> }) {
  const { loaded, refresh } = useTask(at.taskId)
  return (
    <main class="page" id="content">
      <nav class="crumbs" aria-label="Where this is">
        <a href={hrefOf(overviewRoute)}>Overview</a> <span aria-hidden="true">/</span> <span>Task</span>
      </nav>
      {loaded.kind === 'there' ? (
        <Task at={at} view={loaded.value} refresh={refresh} />
      ) : (
        <>
          <h1 class="task-title">{at.taskId}</h1>
          {loaded.kind === 'loading' ? <Skeleton lines={5} /> : null}
          {loaded.kind === 'failed' ? <Empty title={loaded.detail} /> : null}
          {loaded.kind === 'unknown' ? (
            <Empty title="No task of this id was ever called back here.">
              <p>A task exists from its first call-back on. Check the spelling of the id.</p>
            </Empty>
          ) : null}
        </>
      )}
    </main>
  )
}

interface TaskProps {
  readonly at: Extract<Route, { page: 'task' }>
  readonly view: TaskView
  readonly refresh: () => void
}

function Task({ at, view, refresh }: TaskProps) {
  const counts = measureOf(view)
  return (
    <>
      <header class="task-head">
        <h1 class="task-title">
          {view.taskId} <TaskBadge state={view.state} />
        </h1>
        <TaskActions view={view} refresh={refresh} />
      </header>
      <section class="panel" aria-label="Progress">
        <TaskFacts view={view} />
        <div class="task-bar">
          <LevelBar whole={counts} levels={view.levels} />
        </div>
        <Legend of={view} />
      </section>
      <Findings view={view} refresh={refresh} />
      <ThroughputPanel view={view} />
      <LevelTable view={view} at={at} />
      <PartitionPanel view={view} at={at} refresh={refresh} />
    </>
  )
}
