import type { LevelView, TaskView } from '@baton/protocol'
import { useEffect, useState } from 'preact/hooks'
import { compact, counted, exact, percent } from '../parts/format.ts'
import { Empty, Scrolling, Skeleton } from '../parts/panel.tsx'
import { Legend, LevelBar, measureOf, SplitBar, TaskBadge } from '../parts/states.tsx'
import { Head } from '../parts/table.tsx'
import { hrefOf, overviewRoute, type TaskRoute, taskHref } from '../route.ts'
import { client } from '../service/connection.ts'
import { followLive, type Loaded, load, shownAfter } from '../service/live.ts'
import { lookOf, noteLevels, PACE_IS_FRESH_MILLIS } from '../service/tasks.ts'
import { FeedPanel } from './feed-panel.tsx'
import { Findings } from './findings.tsx'
import { GridPanel } from './grid-panel.tsx'
import { PartitionPanel } from './partition-table.tsx'
import { SettingsLine } from './settings-line.tsx'
import { TaskActions } from './task-actions.tsx'
import { TaskFacts } from './task-facts.tsx'
import { ThroughputPanel } from './throughput-panel.tsx'

export function TaskPage({ at }: { at: TaskRoute }) {
  const { loaded, refresh } = useTask(at.taskId)
  return (
    <main class="page" id="content">
      <nav class="crumbs" aria-label="Breadcrumb">
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
            <Empty title="No task with this id was called back.">
              <p>A task exists after its first call-back. Check the spelling of the id.</p>
            </Empty>
          ) : null}
        </>
      )}
    </main>
  )
}

interface TaskProps {
  readonly at: TaskRoute
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
        <SettingsLine view={view} refresh={refresh} />
      </section>
      <Findings view={view} refresh={refresh} />
      <div class="columns">
        <ThroughputPanel view={view} chosen={at.span} />
        <FeedPanel view={view} />
      </div>
      <LevelTable view={view} at={at} />
      <GridPanel view={view} at={at} />
      <PartitionPanel view={view} at={at} refresh={refresh} />
    </>
  )
}

/** The shortest interval between two loads of a task, however fast it progresses. */
const READ_EVERY_MILLIS = 1000
const READ_AGAIN_MILLIS = 5000

/** A task, kept up to date. `refresh` loads it at once. */
function useTask(taskId: string): { loaded: Loaded<TaskView>; refresh: () => void } {
  const [loaded, setLoaded] = useState<Loaded<TaskView>>({ kind: 'loading' })
  const [reader] = useState(() => ({ refresh: () => {} }))
  useEffect(() => {
    let isCurrent = true
    let next: ReturnType<typeof setTimeout> | undefined
    let readAt = 0
    let claimsPace = false
    const read = async () => {
      next = undefined
      readAt = Date.now()
      const outcome = await load(() => readTask(taskId), 'task_unknown')
      claimsPace = outcome.kind === 'there' && outcome.value.recordsPerSecond !== null
      if (isCurrent) setLoaded((before) => shownAfter(before, outcome))
      // A resumed stream sends what changed, but does not trigger another load after a failed one.
      if (isCurrent && outcome.kind === 'failed') next ??= setTimeout(() => void read(), READ_AGAIN_MILLIS)
    }
    const readSoon = () => {
      next ??= setTimeout(() => void read(), Math.max(0, readAt + READ_EVERY_MILLIS - Date.now()))
    }
    const unfollow = followLive({
      reload: readSoon,
      onEvent: (event) => {
        if (event.name === 'task' && event.data.taskId === taskId) readSoon()
      },
    })
    const refreshing = setInterval(() => {
      const isQuiet = Date.now() - readAt > PACE_IS_FRESH_MILLIS / 2
      if (claimsPace && isQuiet && document.visibilityState === 'visible') readSoon()
    }, PACE_IS_FRESH_MILLIS)
    reader.refresh = () => void read()
    setLoaded({ kind: 'loading' })
    void read()
    return () => {
      isCurrent = false
      clearTimeout(next)
      clearInterval(refreshing)
      unfollow()
    }
  }, [taskId, reader])
  return { loaded, refresh: () => reader.refresh() }
}

async function readTask(taskId: string): Promise<TaskView> {
  const look = lookOf(taskId)
  const view = await client.peek().task(taskId)
  noteLevels(taskId, view, look)
  return view
}

function LevelTable({ view, at }: { view: TaskView; at: TaskRoute }) {
  return (
    <section class="panel" aria-labelledby="levels-title">
      <header class="panel-head">
        <h2 id="levels-title">Levels</h2>
        <p class="muted">the lowest level is handed out first</p>
      </header>
      <Scrolling label="Rows of levels" kind="level-rows">
        <table class="levels">
          <Head
            columns={[
              'Level',
              ['Progress', 'level-progress'],
              ['Done', 'number'],
              ['Records', 'number'],
              ['Partitions', 'number wide-only'],
              ['Leased', 'number wide-only'],
              ['Parked', 'number'],
            ]}
          />
          <tbody>
            {view.levels.map((level) => (
              <LevelRow key={level.level} level={level} at={at} />
            ))}
          </tbody>
        </table>
      </Scrolling>
      {view.levelsOmitted > 0 ? <p class="quiet">and {counted(view.levelsOmitted, 'higher level')}</p> : null}
    </section>
  )
}

function LevelRow({ level, at }: { level: LevelView; at: TaskRoute }) {
  const counts = measureOf(level)
  const isFinished = counts.total === counts.done + counts.cancelled
  const parkedHref = taskHref(at.taskId, { state: 'parked', level: level.level })
  return (
    <tr>
      <th scope="row">
        <a href={taskHref(at.taskId, { level: level.level })}>{level.level}</a>
        {level.open || isFinished ? null : <span class="tag">held</span>}
      </th>
      <td class="level-progress">
        <SplitBar counts={counts} label={`Level ${level.level}`} />
      </td>
      <td class="number">{percent(counts.done, counts.total)}</td>
      <td class="number" title={exact(level.records.total)}>
        {compact(level.records.total)}
      </td>
      <td class="number wide-only">{exact(level.partitions.total)}</td>
      <td class="number wide-only">{exact(level.partitions.leased)}</td>
      <td class="number">
        {level.partitions.parked === 0 ? (
          '0'
        ) : (
          <a class="alarm" href={parkedHref}>
            {exact(level.partitions.parked)}
          </a>
        )}
      </td>
    </tr>
  )
}
