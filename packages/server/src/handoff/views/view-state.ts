import { MAX_LISTED_ATTEMPTS } from '@baton/protocol'
import { type EndedAttempt, finishedAttempt } from '../rules/attempts.ts'
import type { IndexRange } from '../rules/index-runs.ts'
import type { PartitionState } from '../rules/life-cycle.ts'
import { isDone, isLaneOpen, type Tally, type TaskFacts, totalOf, unfinishedOf } from '../rules/task.ts'
import type { LaneFacts, PartitionDetails, TaskRow } from './queries.ts'

// Converts stored counts into what users see. A waiting partition is ready if its lane is open and its table is
// not paused, and held otherwise. In a cancelled task everything that was not done is cancelled, whether or not its rows have been
// updated.

export interface ViewedCounts extends Tally {
  readonly total: number
}

export interface ProgressView {
  readonly partitions: ViewedCounts
  readonly records: ViewedCounts
}

interface LaneView extends ProgressView {
  readonly open: boolean
  readonly indexes: IndexRange & { readonly missing: number; readonly gaps: readonly IndexRange[] }
}

interface PartitionView {
  readonly state: PartitionState
  readonly attempts: number
  readonly holder: string | null
  readonly leaseEndsAt: number | null
  readonly readyAt: number | null
}

/** What a task waits for behind its barrier. */
interface WaitedFor {
  readonly level: number
  readonly parked: number
  readonly unfinished: number
}

export function progressView(row: Pick<TaskRow, 'facts' | 'openLane' | 'heldByTable'>): ProgressView {
  const { facts, openLane, heldByTable: held } = row
  const open = facts.levelBarrier ? openLane : null
  return {
    partitions: viewedCounts(facts, facts.partitions, open?.partitions ?? null, held?.partitions),
    records: viewedCounts(facts, facts.records, open?.records ?? null, held?.records),
  }
}

export function laneView(facts: TaskFacts, lane: LaneFacts): LaneView {
  // When everything behind a barrier is done, nothing is held.
  const open = isLaneOpen(facts, lane.level) || (facts.levelBarrier && isDone(facts))
  const { firstIndex: first, lastIndex: last, gaps } = lane
  return {
    open,
    partitions: viewedCounts(
      facts,
      lane.partitions,
      open ? lane.partitions : null,
      lane.heldByTable?.partitions,
    ),
    records: viewedCounts(facts, lane.records, open ? lane.records : null, lane.heldByTable?.records),
    indexes: { first, last, missing: last - first + 1 - totalOf(lane.partitions), gaps },
  }
}

export function partitionView(facts: TaskFacts, record: PartitionDetails): PartitionView {
  const state = viewState(facts, record)
  const isLeased = state === 'leased'
  return {
    state,
    attempts: record.attempts + (isLeased ? 1 : 0),
    holder: isLeased ? record.holder : null,
    leaseEndsAt: isLeased ? record.dueAt : null,
    readyAt: state === 'delayed' ? record.dueAt : null,
  }
}

/** Null if the number of expected partitions was not declared. */
export function missingPartitions({ expectedPartitions, partitions }: TaskFacts): number | null {
  return expectedPartitions === null ? null : Math.max(0, expectedPartitions - totalOf(partitions))
}

/** The lowest unfinished level, if partitions of other levels must wait for it. */
export function waitingFor({ facts, openLane }: Pick<TaskRow, 'facts' | 'openLane'>): WaitedFor | null {
  const { levelBarrier, openLevel: level, cancelled } = facts
  if (!levelBarrier || level === null || openLane === null || cancelled) return null
  if (waitingOf(facts.partitions) === waitingOf(openLane.partitions)) return null
  return { level, parked: openLane.partitions.parked, unfinished: unfinishedOf(openLane.partitions) }
}

const waitingOf = ({ ready, held, delayed }: Tally): number => ready + held + delayed

/** `open`: the part of the tally in open lanes. `heldByTable` waits there; it may be slightly newer. */
function viewedCounts(facts: TaskFacts, tally: Tally, open: Tally | null, heldByTable = 0): ViewedCounts {
  const total = totalOf(tally)
  const none = { ready: 0, held: 0, leased: 0, delayed: 0, parked: 0 }
  if (facts.cancelled) return { total, ...none, done: tally.done, cancelled: total - tally.done }
  const waiting = tally.ready + tally.held
  const allOpen = !facts.paused && !facts.levelBarrier
  const inOpenLanes = allOpen ? waiting : facts.paused || open === null ? 0 : open.ready + open.held
  const ready = Math.max(0, inOpenLanes - heldByTable)
  return { total, ...tally, ready, held: waiting - ready }
}

/** The state as shown to users. */
export function viewState(
  facts: TaskFacts,
  { state, level }: Pick<PartitionDetails, 'state' | 'level'>,
): PartitionState {
  if (facts.cancelled) return state === 'done' ? 'done' : 'cancelled'
  // A record is held if its table is paused.
  return state === 'ready' && !isLaneOpen(facts, level) ? 'held' : state
}

/** An attempt as shown to users. A running attempt has no end and no outcome. */
export type AttemptView = Omit<EndedAttempt, 'endedAt' | 'outcome'> & {
  readonly endedAt: number | null
  readonly outcome: EndedAttempt['outcome'] | null
}

export function attemptViews(facts: TaskFacts, record: PartitionDetails): AttemptView[] {
  const { outcome, holder, leasedAt, history } = record
  const { state, attempts } = partitionView(facts, record)
  const shown: AttemptView[] = [...(history ?? [])]
  if (state === 'leased')
    shown.push({
      attempt: attempts,
      holder,
      startedAt: leasedAt ?? 0,
      endedAt: null,
      outcome: null,
      reason: null,
      records: null,
    })
  else if (state === 'done' && (outcome === 'done' || outcome === 'delivered'))
    shown.push(finishedAttempt(record, outcome))
  return shown.slice(-MAX_LISTED_ATTEMPTS)
}
