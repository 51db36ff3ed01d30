import type {
  DeliveryState,
  InstanceState,
  LevelView,
  PartitionState,
  StateCounts,
  TaskState,
} from '@baton/protocol'
import { partitionStates } from '@baton/protocol/core'
import { exact, percent } from './format.ts'

/**
 * The labels of states, in display order. Keyed by the protocol's types, so that the compiler reports a
 * missing one.
 */
export const taskStateWords: Record<TaskState, string> = {
  open: 'Open',
  stalled: 'Stalled',
  paused: 'Paused',
  done: 'Done',
  cancelled: 'Cancelled',
}

export const partitionStateWords: Record<PartitionState, string> = {
  done: 'Done',
  leased: 'Leased',
  delayed: 'Delayed',
  parked: 'Parked',
  ready: 'Ready',
  held: 'Held',
  cancelled: 'Cancelled',
}

export const partitionStateMeanings: Record<PartitionState, string> = {
  done: 'finished',
  leased: 'leased to a worker',
  delayed: 'waiting for the end of a back-off',
  parked: 'out of attempts or failed without retry; waiting for an operator',
  ready: 'can be handed out now',
  held: 'blocked by a pause or a level barrier',
  cancelled: 'cancelled with the task',
}

export const instanceStateWords: Record<InstanceState, string> = {
  up: 'Up',
  silent: 'Silent',
  lost: 'Lost',
  draining: 'Draining',
  down: 'Down',
}

const deliveryStateWords: Record<DeliveryState, string> = {
  pending: 'Pending',
  delivered: 'Delivered',
  failed: 'Failed',
  kept: 'Kept',
}

export const taskStatesAsShown = Object.keys(taskStateWords) as TaskState[]
export const partitionStatesAsShown = Object.keys(partitionStateWords) as PartitionState[]

/** A state as a word and a colour, because colour must not be the only sign. */
export function TaskBadge({ state }: { state: TaskState }) {
  return <span class={`badge task-${state}`}>{taskStateWords[state]}</span>
}

export function PartitionBadge({ state }: { state: PartitionState }) {
  return <span class={`badge partition-${state}`}>{partitionStateWords[state]}</span>
}

export function InstanceBadge({ state }: { state: InstanceState }) {
  return <span class={`badge instance-${state}`}>{instanceStateWords[state]}</span>
}

export function DeliveryBadge({ state }: { state: DeliveryState }) {
  return <span class={`badge delivery-${state}`}>{deliveryStateWords[state]}</span>
}

interface Counted {
  readonly records: StateCounts
  readonly partitions: StateCounts
}

/** Counts in records, or in partitions if there are no records. */
export function measureOf(of: Counted): StateCounts {
  return of.records.total > 0 ? of.records : of.partitions
}

/** The states that occur, as text: "62% done, 3% leased". */
function splitInWords(counts: StateCounts): string {
  return partitionStatesAsShown
    .filter((state) => counts[state] > 0)
    .map((state) => `${percent(counts[state], counts.total)} ${partitionStateWords[state].toLowerCase()}`)
    .join(', ')
}

/** One bar, divided by state. */
export function SplitBar({ counts, label }: { counts: StateCounts; label: string }) {
  return (
    <div class="bar" role="img" aria-label={`${label}: ${splitInWords(counts) || 'nothing yet'}`}>
      <Segments counts={counts} />
    </div>
  )
}

export function Segments({ counts }: { counts: StateCounts }) {
  const { total } = counts
  return (
    <>
      {partitionStatesAsShown.map((state) =>
        counts[state] === 0 ? null : (
          <span
            key={state}
            class={`segment fill-${state}`}
            style={{ flexGrow: (counts[state] / total) * 1000 }}
            title={`${partitionStateWords[state]}: ${exact(counts[state])}`}
          />
        ),
      )}
    </>
  )
}

/**
 * The legend of the colours. Lists only the states that occur, including those of partitions without records.
 */
export function Legend({ of }: { of: Counted }) {
  const counts = measureOf(of)
  return (
    <ul class="legend">
      {partitionStatesAsShown.map((state) =>
        of.partitions[state] === 0 ? null : (
          <li key={state}>
            <span class={`swatch fill-${state}`} aria-hidden="true" />
            {partitionStateWords[state]} <b class="number">{exact(counts[state])}</b>
          </li>
        ),
      )}
    </ul>
  )
}

/** More levels would be too narrow to distinguish. The last part then combines the rest. */
const LEVELS_SHOWN = 10
/** The minimum width of a level, so that it is visible and can be hovered. */
const SMALLEST_SHARE = 0.04

interface Part {
  readonly name: string
  readonly counts: StateCounts
}

/** The progress of a task: a bar for each level, as wide as its share of the records, divided by state. */
export function LevelBar({
  whole,
  levels,
}: {
  whole: StateCounts
  levels: readonly LevelView[] | undefined
}) {
  if (levels === undefined || levels.length < 2) return <SplitBar counts={whole} label="Progress" />
  const parts = partsOf(levels)
  const total = parts.reduce((sum, { counts }) => sum + counts.total, 0)
  return (
    <div class="level-bar" role="img" aria-label={`Progress: ${splitInWords(whole)}; ${inWords(parts)}`}>
      {parts.map(({ name, counts }) => (
        <div
          key={name}
          class="bar"
          style={{ flexGrow: Math.max(SMALLEST_SHARE, counts.total / total) * 1000 }}
          title={`${name}: ${exact(counts.done)} of ${exact(counts.total)} done`}
        >
          <Segments counts={counts} />
        </div>
      ))}
    </div>
  )
}

function inWords(parts: readonly Part[]): string {
  return parts.map(({ name, counts }) => `${name} ${percent(counts.done, counts.total)} done`).join(', ')
}

function partsOf(levels: readonly LevelView[]): Part[] {
  const byRecords = levels.some(({ records }) => records.total > 0)
  const countsOf = (level: LevelView) => (byRecords ? level.records : measureOf(level))
  const shown = levels.length > LEVELS_SHOWN ? levels.slice(0, LEVELS_SHOWN - 1) : levels
  const rest = levels.slice(shown.length)
  const parts = shown.map((level) => ({ name: `level ${level.level}`, counts: countsOf(level) }))
  if (rest.length > 0)
    parts.push({ name: `${rest.length} further levels`, counts: rest.map(countsOf).reduce(add) })
  return parts.filter(({ counts }) => counts.total > 0)
}

export function add(a: StateCounts, b: StateCounts): StateCounts {
  const sum = { ...a, total: a.total + b.total }
  for (const state of partitionStates) sum[state] = a[state] + b[state]
  return sum
}
