import type { TaskSummary } from '@baton/protocol'
import { isUnfinishedState } from '@baton/protocol/core'
import { useComputed } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { refine, route } from '../current-route.ts'
import { say } from '../parts/control.tsx'
import { CopyAs } from '../parts/copy.tsx'
import { Search } from '../parts/filters.tsx'
import { atLeast, compact, counted, duration, exact, percent, perSecond } from '../parts/format.ts'
import { Ago } from '../parts/moment.tsx'
import { Empty, Skeleton } from '../parts/panel.tsx'
import { LevelBar, measureOf, TaskBadge, taskStatesAsShown, taskStateWords } from '../parts/states.tsx'
import { hrefOf, partitionHref, type Route, type TaskFilter, taskHref, withQuery } from '../route.ts'
import { explained, noteRefusal } from '../service/connection.ts'
import { isAway } from '../service/live.ts'
import {
  levelsOfTask,
  loadMore,
  loadOlder,
  olderCursor,
  type TaskQuery,
  tasks,
  tasksLoad,
  tasksLoads,
  wantLevels,
} from '../service/tasks.ts'
import { totals } from '../service/totals.ts'

type OverviewRoute = Extract<Route, { page: 'overview' }>

/** The tasks, filtered by state and searched by name. */
export function TaskPanel() {
  const at = route.value as OverviewRoute
  const { found, hasMore, busy, loadNext } = useTaskSearch(at)
  const shown = matching([...tasks.value.values()], at)
  const load = tasksLoad.value
  return (
    <section class="panel" aria-labelledby="tasks-title">
      <header class="panel-head">
        <h2 id="tasks-title">Tasks</h2>
        <CopyAs path={withQuery('tasks', queryOf(at))} />
        <Search
          label="Search tasks by name"
          placeholder="Search tasks"
          value={at.search}
          search={(search) => refine({ ...at, search })}
        />
      </header>
      <nav class="tabs" aria-label="Tasks by state">
        <Tab at={at} state={null} />
        <Tab at={at} state="parked" />
        {taskStatesAsShown.map((state) => (
          <Tab key={state} at={at} state={state} />
        ))}
      </nav>
      {load === 'loading' ? <Skeleton lines={4} /> : null}
      {typeof load === 'object' && tasks.value.size === 0 ? <Empty title={load.failed} /> : null}
      {load === 'loaded' && shown.length === 0 && found === 'searching' ? <Skeleton lines={2} /> : null}
      {load === 'loaded' && shown.length === 0 && found === 'searched' ? (
        <Empty title={hasMore ? 'No task matches so far.' : 'No task matches.'} />
      ) : null}
      <PartitionNamed name={at.search} />
      {typeof found === 'object' ? (
        <p class="quiet fault" role="alert">
          The search covers only tasks that were already read: {found.failed}
        </p>
      ) : null}
      <ol class="tasks">
        {shown.map((task) => (
          <TaskRow key={task.taskId} task={task} />
        ))}
      </ol>
      {hasMore ? (
        <MoreButton
          words={at.search === '' && at.state === null ? 'Older tasks' : 'More tasks'}
          busy={busy}
          load={loadNext}
        />
      ) : null}
    </section>
  )
}

/** A search for the name of a partition leads to it. */
function PartitionNamed({ name }: { name: string }) {
  const taskId = /^(.+)-\d+-\d+$/.exec(name.trim())?.[1]
  if (taskId === undefined) return null
  return (
    <p class="quiet">
      If this is a partition: <a href={partitionHref(name.trim())}>find it in {taskId}</a>
    </p>
  )
}

function Tab({ at, state }: { at: OverviewRoute; state: TaskFilter | null }) {
  const count = countOf(state)
  const { isExact } = totals.value
  if (state === 'parked' && count === 0 && isExact && at.state !== 'parked') return null
  return (
    <a class="tab" href={hrefOf({ ...at, state })} aria-current={at.state === state ? 'page' : undefined}>
      {wordsOf(state)}
      {count > 0 ? <span class="tab-count">{atLeast(exact(count), isExact)}</span> : null}
    </a>
  )
}

/** The number of tasks, for unfinished states only. Finished tasks are kept forever and are not counted. */
function countOf(state: TaskFilter | null): number {
  const { open, stalled, paused, withParked } = totals.value
  switch (state) {
    case 'open':
      return open
    case 'stalled':
      return stalled
    case 'paused':
      return paused
    case 'parked':
      return withParked
    default:
      return 0
  }
}

interface MoreProps {
  readonly words: string
  readonly busy: boolean
  readonly load: () => Promise<void>
}

function MoreButton({ words, busy, load }: MoreProps) {
  return (
    <button
      type="button"
      class="button wide"
      aria-disabled={busy}
      onClick={() => void load().catch((error: unknown) => say('failed', explained(error)))}
    >
      {words}
    </button>
  )
}

function wordsOf(state: TaskFilter | null): string {
  if (state === null) return 'All'
  return state === 'parked' ? 'Needs attention' : taskStateWords[state]
}

function passes({ state, partitions }: TaskSummary, filter: TaskFilter | null): boolean {
  if (filter === 'parked') return partitions.parked > 0 && state !== 'cancelled'
  return filter === null || state === filter
}

/** Unfinished tasks first, then the finished ones; newest first within both. */
function inOrder(a: TaskSummary, b: TaskSummary): number {
  const isOver = ({ state }: TaskSummary) => (isUnfinishedState(state) ? 0 : 1)
  return isOver(a) - isOver(b) || (a.firstCallBackAt < b.firstCallBackAt ? 1 : -1)
}

function matching(all: readonly TaskSummary[], { state, search }: OverviewRoute): TaskSummary[] {
  return all.filter((task) => passes(task, state) && task.taskId.includes(search)).sort(inOrder)
}

const SEARCH_AFTER_MILLIS = 250

interface SearchResult {
  readonly state: 'searching' | 'searched' | { readonly failed: string }
  /** The cursor of the next page of results. */
  readonly next: string | null
}

const SEARCHING: SearchResult = { state: 'searching', next: null }

/**
 * Loads the tasks that match a filter or a search from the service, because tasks that were not loaded yet
 * may match too.
 */
function useTaskSearch(at: OverviewRoute) {
  const { state, search } = at
  const isFiltered = state !== null || search !== ''
  const loads = tasksLoads.value
  const [result, setResult] = useState<SearchResult>(SEARCHING)
  const [busy, setBusy] = useState(false)

  useEffect(() => {
    if (!isFiltered) return
    let isCurrent = true
    const show = (outcome: SearchResult) => {
      if (isCurrent) setResult(outcome)
    }
    show(SEARCHING)
    const starting = setTimeout(() => {
      loadMore(queryOf(at), 'any').then(
        (next) => show({ state: 'searched', next }),
        (error: unknown) => {
          noteRefusal(error)
          show({ state: { failed: explained(error) }, next: null })
        },
      )
    }, SEARCH_AFTER_MILLIS)
    return () => {
      isCurrent = false
      clearTimeout(starting)
    }
  }, [state, search, loads])

  const next = isFiltered ? result.next : olderCursor.value
  const loadNext = async (): Promise<void> => {
    if (next === null || busy) return
    setBusy(true)
    try {
      if (!isFiltered) await loadOlder()
      else {
        const following = await loadMore({ ...queryOf(at), cursor: next }, 'new ones')
        setResult((now) => (now.next === next ? { state: 'searched', next: following } : now))
      }
    } finally {
      setBusy(false)
    }
  }
  return { found: isFiltered ? result.state : ('searched' as const), hasMore: next !== null, busy, loadNext }
}

function queryOf({ state, search }: OverviewRoute): TaskQuery {
  return {
    ...(state === null ? {} : state === 'parked' ? { parked: true } : { state }),
    ...(search === '' ? {} : { search }),
  }
}

function TaskRow({ task }: { task: TaskSummary }) {
  const { taskId, state } = task
  const isUnfinished = isUnfinishedState(state)
  useEffect(() => (isUnfinished ? wantLevels(taskId) : undefined), [taskId, isUnfinished])
  // Depends on the levels of this task only. Otherwise each loaded task would render every row again.
  const levels = useComputed(() => levelsOfTask.value.get(taskId))
  const counts = measureOf(task)
  const unit = counts === task.records ? 'records' : 'partitions'
  return (
    <li class="task-row">
      <div class="task-name">
        <a href={taskHref(taskId)} title={taskId}>
          {taskId}
        </a>
        <TaskBadge state={state} />
      </div>
      <div class="task-progress">
        <LevelBar whole={counts} levels={isUnfinished ? levels.value : undefined} />
      </div>
      <p class="task-share number" title={`${exact(counts.done)} of ${exact(counts.total)} ${unit}`}>
        <b>{percent(counts.done, counts.total)}</b>
        <span>
          {counts.done === counts.total ? '' : `${compact(counts.done)} of `}
          {compact(counts.total)} {unit}
        </span>
      </p>
      <p class="task-pace number">
        <Pace task={task} />
      </p>
      {task.reason === null ? null : (
        <p class="task-reason" title={task.reason}>
          Failures: {task.reason}
        </p>
      )}
    </li>
  )
}

/**
 * The most important fact: parked partitions, else missing ones, else pace and remaining time, else the last
 * call-back.
 */
function Pace({ task }: { task: TaskSummary }) {
  const { taskId, state, partitions, missingPartitions } = task
  // While the service is unreachable, the pace is unknown.
  const [recordsPerSecond, etaSeconds] = isAway.value
    ? [null, null]
    : [task.recordsPerSecond, task.etaSeconds]
  if (partitions.parked > 0 && state !== 'cancelled') {
    return (
      <>
        <a class="alarm" href={taskHref(taskId, { state: 'parked' })}>
          {exact(partitions.parked)} parked
        </a>
        <span>
          {etaSeconds === null
            ? counted(partitions.total, 'partition')
            : `the rest in ${duration(etaSeconds)}`}
        </span>
      </>
    )
  }
  if (missingPartitions !== null && missingPartitions > 0 && state !== 'cancelled') {
    return (
      <>
        <a class="alarm" href={taskHref(taskId)}>
          {exact(missingPartitions)} missing
        </a>
        <span>
          {etaSeconds === null
            ? `of ${counted(partitions.total + missingPartitions, 'partition')}`
            : `the rest in ${duration(etaSeconds)}`}
        </span>
      </>
    )
  }
  if (state === 'open' && recordsPerSecond !== null) {
    return (
      <>
        <b>{etaSeconds === null ? '–' : `${duration(etaSeconds)} left`}</b>
        <span title="mean over the last minute">{perSecond(recordsPerSecond)} records/s</span>
      </>
    )
  }
  return (
    <>
      <b class="calm">{counted(partitions.total, 'partition')}</b>
      <span>
        called back <Ago at={task.lastCallBackAt} />
      </span>
    </>
  )
}
