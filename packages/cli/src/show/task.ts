import type { LevelView, StateCounts, TaskSummary, TaskView } from '@baton/client'
import { styled } from '../terminal.ts'
import { bar, percent } from './bar.ts'
import { count, counted, duration, rounded, since } from './numbers.ts'
import { stateColours, taskColours } from './state-colours.ts'
import { nameColumn, shown, table } from './table.ts'

const LIST_BAR = { most: 20, least: 8 }
const LEVEL_BAR = { most: 30, least: 8 }
const MOST_LEVELS = 20

/** Of a task that is kept as numbers only. */
export const forgottenText = 'its partitions were forgotten after their retention; the numbers stay'

/** In records; in partitions where no partition has any. */
function measure({ records, partitions }: { records: StateCounts; partitions: StateCounts }): StateCounts {
  return records.total > 0 ? records : partitions
}

/** What is done, in hands, waiting, and stuck. */
function progressBar(width: number, counts: StateCounts): string {
  return bar(width, [
    { amount: counts.done, mark: '█', style: stateColours.done },
    { amount: counts.leased, mark: '▓', style: stateColours.leased },
    { amount: counts.ready + counts.held + counts.delayed, mark: '░', style: stateColours.ready },
    { amount: counts.parked, mark: '▚', style: stateColours.parked },
    { amount: counts.cancelled, mark: '·', style: stateColours.cancelled },
  ])
}

export function taskTable(tasks: readonly TaskSummary[]): string {
  return table(tasks, [
    nameColumn('TASK', ({ taskId }) => taskId),
    { title: 'STATE', of: stateCell },
    { title: 'PROGRESS', of: (task, width) => progressBar(width, measure(task)), picture: LIST_BAR },
    { title: '', of: (task) => percent(measure(task).done, measure(task).total), align: 'right' },
    {
      title: 'PARTITIONS',
      of: ({ partitions }) => `${rounded(partitions.done)}/${rounded(partitions.total)}`,
      align: 'right',
    },
    {
      title: 'RECORDS',
      of: ({ records }) => `${rounded(records.done)}/${rounded(records.total)}`,
      align: 'right',
    },
    { title: 'PARKED', of: ({ partitions }) => parkedCell(partitions.parked), align: 'right' },
    { title: 'RECORDS/S', of: ({ recordsPerSecond }) => orDash(recordsPerSecond, rounded), align: 'right' },
    { title: 'LEFT', of: ({ etaSeconds }) => orDash(etaSeconds, duration), align: 'right' },
  ])
}

export function taskView(task: TaskView): string {
  const { taskId, state, sealed, generation, firstCallBackAt, partitions, records } = task
  const marks = [
    ...(sealed ? ['sealed'] : []),
    ...(generation > 1 ? [`generation ${generation}`] : []),
    ...(task.levelBarrier ? ['level barrier'] : []),
  ]
  return [
    `${styled('bold', shown(taskId))}  ${styled(taskColours[state], state)}${marks.map((mark) => `  ${mark}`).join('')}`,
    `called back ${since(firstCallBackAt)}, ${task.computeTables.map(shown).join(', ')}`,
    '',
    levelTable(task),
    ...(task.levelsOmitted > 0 ? [`… and ${counted(task.levelsOmitted, 'level')} more`] : []),
    '',
    `${count(partitions.done)} of ${counted(partitions.total, 'partition')}, ` +
      `${count(records.done)} of ${counted(records.total, 'record')}${paceOf(task)}`,
    ...remarks(task),
  ].join('\n')
}

function levelTable(task: TaskView): string {
  const levels = task.levels.slice(0, MOST_LEVELS)
  const hidden = task.levels.length - levels.length
  const rows = table(levels, [
    { title: 'LEVEL', of: ({ level }) => count(level), align: 'right' },
    { title: 'PROGRESS', of: (level, width) => progressBar(width, measure(level)), picture: LEVEL_BAR },
    { title: '', of: (level) => percent(measure(level).done, measure(level).total), align: 'right' },
    {
      title: 'DONE',
      of: ({ partitions }) => `${count(partitions.done)}/${count(partitions.total)}`,
      align: 'right',
    },
    { title: 'LEASED', of: ({ partitions }) => count(partitions.leased), align: 'right' },
    { title: 'WAITING', of: (level) => waitingCell(level), align: 'right' },
    { title: 'PARKED', of: ({ partitions }) => parkedCell(partitions.parked), align: 'right' },
    { title: 'RECORDS', of: ({ records }) => count(records.total), align: 'right' },
  ])
  return hidden > 0 ? `${rows}\n… and ${counted(hidden, 'level')} more` : rows
}

function waitingCell({ open, partitions }: LevelView): string {
  const waiting = partitions.ready + partitions.held + partitions.delayed
  return open || waiting === 0 ? count(waiting) : `${count(waiting)} held`
}

/** A task that is done without all of its partitions must not look like one that is whole. */
function stateCell({ state, missingPartitions }: TaskSummary): string {
  const shownState = styled(taskColours[state], state)
  if (!missingPartitions || state === 'cancelled') return shownState
  return `${shownState}, ${styled(stateColours.parked, `${count(missingPartitions)} missing`)}`
}

function parkedCell(parked: number): string {
  return parked === 0 ? '0' : styled(stateColours.parked, count(parked))
}

function paceOf({ recordsPerSecond, etaSeconds }: TaskSummary): string {
  const pace = recordsPerSecond === null ? '' : `, ${rounded(recordsPerSecond)} records/s`
  return etaSeconds === null ? pace : `${pace}, about ${duration(etaSeconds)} left`
}

/** What somebody may have to do something about, or should not be deceived by. */
function remarks(task: TaskView): string[] {
  const { taskId, partitions, missingPartitions, reported, settledByDelivery, waitingFor } = task
  const name = shown(taskId)
  return [
    ...(settledByDelivery > 0
      ? [`${counted(settledByDelivery, 'partition')} settled by delivery: done counts from being handed out`]
      : []),
    ...(partitions.parked > 0
      ? [
          `${counted(partitions.parked, 'partition')} parked: baton partitions ${name} --state parked, baton retry ${name}`,
        ]
      : []),
    ...(waitingFor !== null && waitingFor.parked > 0
      ? [`level ${waitingFor.level} keeps higher ones back: baton skip-parked ${name} goes on without it`]
      : []),
    ...(missingPartitions !== null && missingPartitions > 0
      ? [`${counted(missingPartitions, 'partition')} expected but not called back`]
      : []),
    ...(task.purgedAt !== null ? [forgottenText] : []),
    ...(reported.mismatched > 0
      ? [
          `${counted(reported.mismatched, 'partition')} where workers processed another number of records than declared`,
        ]
      : []),
  ]
}

function orDash<T>(value: T | null, show: (value: T) => string): string {
  return value === null ? '-' : show(value)
}
