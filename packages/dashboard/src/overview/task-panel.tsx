import type { TaskSummary } from '@baton/protocol'
import { useEffect, useState } from 'preact/hooks'
import { refine, route } from '../here.ts'
import { Empty, Skeleton } from '../parts/empty.tsx'
import { say } from '../parts/notices.tsx'
import { taskStates, taskStateWords } from '../parts/states.ts'
import { hrefOf, type Route, type TaskFilter } from '../route.ts'
import { explained } from '../service/connection.ts'
import {
  loadMore,
  loadOlder,
  olderCursor,
  tasks,
  tasksLoad,
  tasksLoads,
  unfinishedStates,
} from '../service/tasks.ts'
import { TaskRow } from './task-row.tsx'

const SEARCH_AFTER_MILLIS = 250

type OverviewRoute = Extract<Route, { page: 'overview' }>

/** The tasks, newest first, filtered by state and searched by name. */
export function TaskPanel() {
  const at = route.value as OverviewRoute
  useAskService(at)
  const shown = matching([...tasks.value.values()], at)
  const load = tasksLoad.value
  return (
    <section class="panel" aria-labelledby="tasks-title">
      <header class="panel-head">
        <h2 id="tasks-title">Tasks</h2>
        <label class="search">
          <span class="visually-hidden">Search tasks by name</span>
          <input
            type="search"
            placeholder="Search tasks"
            value={at.search}
            onInput={(event) => refine({ ...at, search: event.currentTarget.value })}
          />
        </label>
      </header>
      <nav class="tabs" aria-label="Tasks by state">
        <Tab at={at} state={null} />
        <Tab at={at} state="parked" />
        {taskStates.map((state) => (
          <Tab key={state} at={at} state={state} />
        ))}
      </nav>
      {load === 'loading' ? <Skeleton lines={4} /> : null}
      {typeof load === 'object' && tasks.value.size === 0 ? <Empty title={load.failed} /> : null}
      {load === 'loaded' && shown.length === 0 ? <Empty title="No task matches." /> : null}
      <ol class="tasks">
        {shown.map((task) => (
          <TaskRow key={task.taskId} task={task} />
        ))}
      </ol>
      {olderCursor.value === null || at.search !== '' || at.state !== null ? null : <OlderButton />}
    </section>
  )
}

function Tab({ at, state }: { at: OverviewRoute; state: TaskFilter | null }) {
  const count = [...tasks.value.values()].filter((task) => passes(task, state)).length
  const isCounted = state !== null && state !== 'done' && state !== 'cancelled'
  if (state === 'parked' && count === 0 && at.state !== 'parked') return null
  return (
    <a class="tab" href={hrefOf({ ...at, state })} aria-current={at.state === state ? 'page' : undefined}>
      {wordsOf(state)}
      {isCounted && count > 0 ? <span class="tab-count">{count}</span> : null}
    </a>
  )
}

function OlderButton() {
  const [busy, setBusy] = useState(false)
  const load = () => {
    setBusy(true)
    loadOlder()
      .catch((error: unknown) => say('failed', explained(error)))
      .finally(() => setBusy(false))
  }
  return (
    <button type="button" class="button wide" disabled={busy} onClick={load}>
      Older tasks
    </button>
  )
}

function wordsOf(state: TaskFilter | null): string {
  if (state === null) return 'All'
  return state === 'parked' ? 'Needs you' : taskStateWords[state]
}

function passes({ state, partitions }: TaskSummary, filter: TaskFilter | null): boolean {
  if (filter === 'parked') return partitions.parked > 0 && state !== 'cancelled'
  return filter === null || state === filter
}

/** What was not loaded yet may match too. */
function useAskService({ state, search }: OverviewRoute): void {
  const loads = tasksLoads.value
  useEffect(() => {
    if (search === '' && state === null) return
    const query = {
      ...(state === null || state === 'parked' ? {} : { state }),
      ...(search === '' ? {} : { search }),
    }
    const asking = setTimeout(() => void loadMore(query).catch(() => {}), SEARCH_AFTER_MILLIS)
    return () => clearTimeout(asking)
  }, [state, search, loads])
}

/** What can still move comes first; among these, as among the others, the newest. */
function inOrder(a: TaskSummary, b: TaskSummary): number {
  const isOver = ({ state }: TaskSummary) => (unfinishedStates.includes(state) ? 0 : 1)
  return isOver(a) - isOver(b) || (a.firstCallBackAt < b.firstCallBackAt ? 1 : -1)
}

function matching(all: readonly TaskSummary[], { state, search }: OverviewRoute): TaskSummary[] {
  return all.filter((task) => passes(task, state) && task.taskId.includes(search)).sort(inOrder)
}
