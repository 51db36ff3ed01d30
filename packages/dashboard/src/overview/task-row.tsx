import type { TaskSummary } from '@baton/protocol'
import { isUnfinishedState } from '@baton/protocol/core'
import { useComputed } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { compact, counted, duration, exact, percent, perSecond } from '../parts/format.ts'
import { Ago } from '../parts/moment.tsx'
import { LevelBar, measureOf, TaskBadge } from '../parts/states.tsx'
import { hrefOf, taskHref } from '../route.ts'
import { isAway } from '../service/live.ts'
import { levelsOfTask, wantLevels } from '../service/tasks.ts'

export function TaskRow({ task }: { task: TaskSummary }) {
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
        <a class="alarm" href={hrefOf({ page: 'task', taskId, state: 'parked', level: null })}>
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
