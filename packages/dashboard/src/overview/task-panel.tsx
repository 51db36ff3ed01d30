import type { TaskState, TaskSummary } from '@baton/protocol'
import { useEffect, useState } from 'preact/hooks'
import { refine, route } from '../here.ts'
import { Empty, Skeleton } from '../parts/empty.tsx'
import { say } from '../parts/notices.tsx'
import { taskStates, taskStateWords } from '../parts/states.ts'
import { hrefOf, type Route } from '../route.ts'
import { explained } from '../service/connection.ts'
import { loadMore, loadOlder, olderCursor, tasks, tasksLoad } from '../service/tasks.ts'
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

function Tab({ at, state }: { at: OverviewRoute; state: TaskState | null }) {
  const count = [...tasks.value.values()].filter((task) => state === null || task.state === state).length
  const isCounted = state === 'open' || state === 'stalled' || state === 'paused'
  return (
    <a class="tab" href={hrefOf({ ...at, state })} aria-current={at.state === state ? 'page' : undefined}>
      {state === null ? 'All' : taskStateWords[state]}
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

/** What was not loaded yet may match too. */
function useAskService({ state, search }: OverviewRoute): void {
  useEffect(() => {
    if (search === '' && state === null) return
    const query = { ...(state === null ? {} : { state }), ...(search === '' ? {} : { search }) }
    const asking = setTimeout(() => void loadMore(query).catch(() => {}), SEARCH_AFTER_MILLIS)
    return () => clearTimeout(asking)
  }, [state, search])
}

function matching(all: readonly TaskSummary[], { state, search }: OverviewRoute): TaskSummary[] {
  return all
    .filter((task) => (state === null || task.state === state) && task.taskId.includes(search))
    .sort((a, b) => (a.firstCallBackAt < b.firstCallBackAt ? 1 : -1))
}
