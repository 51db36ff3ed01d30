import type {
  Failure,
  LeaseProgress,
  LevelView,
  PartitionRow,
  StateCounts,
  TaskSummary,
  TaskView,
} from '@baton/client'
import { shown, stateColours, styled, taskColours } from '../terminal.ts'
import { ahead, count, counted, duration, rounded, since } from './numbers.ts'
import { bar, percent } from './progress.ts'
import { beginning, type Column, nameColumn, table } from './table.ts'

const LIST_BAR = { most: 20, least: 8 }
const LEVEL_BAR = { most: 30, least: 8 }
const MOST_LEVELS = 20
/** Of a failure, in the list of tasks. */
const TASK_REASON = { least: 16 }

/** For a task of which only the totals are kept. */
export const forgottenText = 'retention deleted the partitions; the counts are kept'

/** Counts in records, or in partitions if no partition has records. */
function measure({ records, partitions }: { records: StateCounts; partitions: StateCounts }): StateCounts {
  return records.total > 0 ? records : partitions
}

/** Shows the done, leased, waiting and parked parts. */
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
    ...(tasks.some(({ reason }) => reason !== null)
      ? [
          {
            title: 'REASON',
            of: ({ reason }: TaskSummary, width: number) => reasonText(reason ?? '', width),
            text: TASK_REASON,
          },
        ]
      : []),
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
    ...controlLines(task.control),
    '',
    levelTable(task),
    ...(task.levelsOmitted > 0 ? [`… and ${counted(task.levelsOmitted, 'level')} more`] : []),
    '',
    `${count(partitions.done)} of ${counted(partitions.total, 'partition')}, ` +
      `${count(records.done)} of ${counted(records.total, 'record')}${paceOf(task)}`,
    ...remarks(task),
  ].join('\n')
}

/** Who changed the task, and when. Without tokens, nobody has a name. */
function controlLines({ paused, cancelled, sealed, changed }: TaskView['control']): string[] {
  const lines = Object.entries({ paused, cancelled, sealed, changed }).flatMap(([did, stamp]) =>
    stamp === null
      ? []
      : [`${did}${stamp.name === null ? '' : ` by ${shown(stamp.name)}`} ${since(stamp.at)}`],
  )
  return lines.length === 0 ? [] : [lines.join(', ')]
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

/** A level is held by a barrier, by the pause of its task, or of a compute table. */
function waitingCell({ partitions: { ready, held, delayed } }: LevelView): string {
  const waiting = ready + held + delayed
  if (held === 0) return count(waiting)
  return held === waiting ? `${count(held)} held` : `${count(waiting)}, ${count(held)} held`
}

/** A task that is done but incomplete must not look complete. */
function stateCell({ state, missingPartitions }: TaskSummary): string {
  const viewState = styled(taskColours[state], state)
  if (!missingPartitions || state === 'cancelled') return viewState
  return `${viewState}, ${styled(stateColours.parked, `${count(missingPartitions)} missing`)}`
}

function parkedCell(parked: number): string {
  return parked === 0 ? '0' : styled(stateColours.parked, count(parked))
}

function paceOf({ recordsPerSecond, etaSeconds, etaWaitsFor }: TaskSummary): string {
  const pace = recordsPerSecond === null ? '' : `, ${rounded(recordsPerSecond)} records/s`
  if (etaSeconds === null) return pace
  return `${pace}, about ${duration(etaSeconds)} left${reasonOfEta(etaWaitsFor)}`
}

/** Why the remaining time is longer than the pace suggests. */
function reasonOfEta(waitsFor: TaskSummary['etaWaitsFor']): string {
  if (waitsFor === 'lease') return ' (waits for the end of a lease)'
  return waitsFor === 'back-off' ? ' (waits for the end of a back-off)' : ''
}

/** Notes that may need action, or that prevent a wrong impression. */
function remarks(task: TaskView): string[] {
  const { taskId, state, partitions, missingPartitions, reported, settledByDelivery, waitingFor } = task
  const { paused } = task.control
  const name = shown(taskId)
  return [
    ...(state === 'paused' && paused?.because != null
      ? [`paused itself ${since(paused.at)}, because ${paused.because}: baton resume ${name}`]
      : []),
    ...(settledByDelivery > 0
      ? [`${counted(settledByDelivery, 'partition')} settled by delivery, which counts as done`]
      : []),
    ...(partitions.parked > 0
      ? [
          `${counted(partitions.parked, 'partition')} parked: baton partitions ${name} --state parked, baton retry ${name}`,
        ]
      : []),
    ...(waitingFor !== null && waitingFor.parked > 0
      ? [`level ${waitingFor.level} blocks higher levels: baton skip-parked ${name} opens them`]
      : []),
    ...stragglerLines(task),
    ...failureLines(task),
    ...(missingPartitions !== null && missingPartitions > 0
      ? [`${counted(missingPartitions, 'partition')} expected but not called back`]
      : []),
    ...(task.purgedAt !== null ? [forgottenText] : []),
    ...(reported.mismatched > 0
      ? [
          `${counted(reported.mismatched, 'partition')} with a different number of processed records than declared`,
        ]
      : []),
  ]
}

/** Partitions that take much longer than others, and their holders. */
function stragglerLines({ stragglers, attemptSeconds }: TaskView): string[] {
  const usual = attemptSeconds === null ? '' : `; the median attempt takes ${duration(attemptSeconds.median)}`
  return stragglers.map(({ partition_name, holder, startedAt, leaseExpiresAt, progress }) => {
    const who = holder === null ? '' : ` with ${shown(holder)}`
    const done = progress?.records === undefined ? '' : `, ${counted(progress.records, 'record')} so far`
    return `${shown(partition_name)} is overdue${who}: started ${since(startedAt)}, lease expires ${ahead(leaseExpiresAt)}${done}${usual}`
  })
}

const MOST_FAILURES = 5

/** Reasons of unsuccessful attempts, those of parked partitions first. */
function failureLines({ taskId, attemptsWasted, failures }: TaskView): string[] {
  if (failures.length === 0) return []
  const listed = failures.slice(0, MOST_FAILURES)
  const rest = failures.slice(MOST_FAILURES).reduce((sum, one) => sum + one.count, 0)
  return [
    `${counted(attemptsWasted, 'attempt')} failed or expired:`,
    ...listed.flatMap((failure) => [
      `  ${count(failure.count)} × ${reasonText(wordsOf(failure), 100)}`,
      ...(failure.parked.partitions === 0
        ? []
        : [
            `    ${counted(failure.parked.partitions, 'partition')} parked, ${counted(failure.parked.records, 'record')}: ` +
              `baton retry ${shown(taskId)} --reason ${failure.key}`,
          ]),
    ]),
    ...(rest > 0 ? [`  ${count(rest)} × other reasons`] : []),
  ]
}

const wordsOf = ({ key, reason }: Failure): string =>
  reason ?? (key === 'other' ? 'other reasons' : 'no reason')

function orDash<T>(value: T | null, show: (value: T) => string): string {
  return value === null ? '-' : show(value)
}

/**
 * The reason of a failure on one line. It usually is the end of a program's output, so if it is too long,
 * only its last line is shown.
 */
export function reasonText(reason: string, width: number): string {
  const lines = reason
    .split(/[\r\n]+/)
    .map((line) => shown(line.trim()))
    .filter((line) => line !== '')
  const [last = ''] = lines.slice(-1)
  const whole = lines.join(' · ')
  return beginning(whole, width) === whole ? whole : beginning(lines.length > 1 ? `… ${last}` : last, width)
}

const REASON = { least: 30 }
const PROGRESS = { least: 20 }

/** What a worker reported about its partition. */
export function progressText({ records, note }: LeaseProgress, recordCount: number): string {
  const share = records === undefined ? '' : `${count(records)} of ${count(recordCount)}`
  return [share, shown(note ?? '')].filter((words) => words !== '').join(': ') || 'working'
}

/** A table of partitions. Columns without any value are omitted. */
export function partitionTable(
  rows: readonly PartitionRow[],
  width: number,
  now: number = Date.now(),
): string {
  const where = (column: Column<PartitionRow>, has: (row: PartitionRow) => boolean) =>
    rows.some(has) ? [column] : []
  return table(
    rows,
    [
      nameColumn('PARTITION', ({ partition_name }) => partition_name),
      { title: 'STATE', of: ({ state }) => styled(stateColours[state], state) },
      { title: 'RECORDS', of: ({ record_count }) => count(record_count), align: 'right' },
      { title: 'ATTEMPTS', of: ({ attempts }) => count(attempts), align: 'right' },
      ...where(
        nameColumn('HOLDER', ({ holder }) => holder ?? ''),
        ({ holder }) => holder !== null,
      ),
      ...where(
        { title: 'LEASE ENDS', of: ({ leaseExpiresAt }) => moment(leaseExpiresAt, now) },
        ({ leaseExpiresAt }) => leaseExpiresAt !== null,
      ),
      ...where(
        { title: 'READY', of: ({ readyAt }) => moment(readyAt, now) },
        ({ readyAt }) => readyAt !== null,
      ),
      ...where(
        {
          title: 'PROGRESS',
          of: ({ progress, record_count }, cellWidth) =>
            progress === undefined ? '' : beginning(progressText(progress, record_count), cellWidth),
          text: PROGRESS,
        },
        ({ progress }) => progress !== undefined,
      ),
      ...where(
        {
          title: 'CHECKPOINT',
          of: ({ checkpoint }, cellWidth) => reasonText(checkpoint ?? '', cellWidth),
          text: PROGRESS,
        },
        ({ checkpoint }) => checkpoint !== undefined,
      ),
      ...where(
        {
          title: 'LAST REASON',
          of: ({ lastReason }, cellWidth) => reasonText(lastReason ?? '', cellWidth),
          text: REASON,
        },
        ({ lastReason }) => lastReason !== null,
      ),
      ...where(
        { title: 'FIELDS', of: ({ fields }) => shown(fieldsText(fields)), text: REASON },
        ({ fields }) => fields !== undefined,
      ),
    ],
    width,
  )
}

/** The fields beyond the contract, as the service keeps them. */
const fieldsText = (fields: PartitionRow['fields'] = {}): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')

function moment(timestamp: string | null, now: number): string {
  return timestamp === null ? '' : ahead(timestamp, now)
}
