import type { Step } from '../../../handoff/rules/control-rules.ts'
import { unfinishedStates } from '../../../handoff/rules/life-cycle.ts'
import { unfinishedOf } from '../../../handoff/rules/tally.ts'
import type { LaneEntry, TaskEntry } from '../../../handoff/rules/task-entry.ts'
import type { TidyOrder, TidyResult } from '../../../handoff/store.ts'
import { Roll } from '../roll/roll.ts'
import type { Roller } from '../roll/roller.ts'
import { settleLanes } from '../roll/settle-lanes.ts'
import { advanceStep, cancelLate, type Progress } from '../roll/task-steps.ts'
import { untilOthersAreThrough } from '../rows/at-hand.ts'
import type { Names } from '../rows/names.ts'
import { statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import type { Transactions } from '../session/transactions.ts'
import { STEP } from '../windows/lanes.ts'
import { Forgetting } from './forgetting.ts'

/**
 * All that a node asks while there is nothing to tidy: every ten seconds, a few look-ups. Chance chooses among the steps:
 * that of a small task does not wait until a large one is through.
 */
const todo = statement(
  'to-tidy',
  `SELECT (SELECT json_build_object('task', task, 'step', step, 'onlyLevel', only_level) FROM baton.task_step ORDER BY random() LIMIT 1) AS step,
     coalesce((SELECT task FROM baton.purging LIMIT 1),
       (SELECT id FROM baton.task
        WHERE finished_at IS NOT NULL AND purged_at IS NULL AND finished_at < $1
          AND ${unfinishedStates.map((state) => `${state}_partitions`).join(' + ')} = 0
        ORDER BY finished_at LIMIT 1)) AS finished,
     EXISTS (SELECT FROM baton.pull_key WHERE forget_at <= $2)
       OR EXISTS (SELECT FROM baton.instance WHERE last_seen_at < $3 OR draining AND last_seen_at < $4) AS forgettable`,
)
const FINISHED_ROWS = `FROM baton.partition WHERE lane = l.lane AND idx >= 0 AND state IN ('done', 'cancelled')`
const OF_LANES = 'FROM unnest($1::bigint[]) AS l (lane)'
const remove = statement<{ readonly lane: number; readonly recordCount: number }>(
  'purge',
  `DELETE FROM baton.partition WHERE id = ANY (ARRAY(
     SELECT p.id ${OF_LANES} CROSS JOIN LATERAL (
       SELECT id ${FINISHED_ROWS} ORDER BY idx LIMIT $2 FOR UPDATE SKIP LOCKED
     ) p LIMIT $2
   ))
   RETURNING lane, record_count AS "recordCount"`,
)
const rowsLeft = statement(
  'rows-left-to-purge',
  `SELECT EXISTS (SELECT ${OF_LANES} WHERE EXISTS (SELECT ${FINISHED_ROWS})) AS left`,
)
const beginPurge = statement(
  'begin-purge',
  'INSERT INTO baton.purging (task) VALUES ($1) ON CONFLICT DO NOTHING',
)
const endPurge = statement('end-purge', 'DELETE FROM baton.purging WHERE task = $1')
const forgetPace = statement('forget-pace-of-task', 'DELETE FROM baton.pace WHERE task = $1')

/** What can be done later, a little at a time, so that no pull waits for it; on whichever node comes first. */
export class Tidy {
  readonly #transactions: Transactions
  readonly #roller: Roller
  readonly #forgetting: Forgetting

  constructor(transactions: Transactions, roller: Roller, names: Names) {
    this.#transactions = transactions
    this.#roller = roller
    this.#forgetting = new Forgetting(transactions, names)
  }

  async run(order: TidyOrder): Promise<TidyResult> {
    const opened = await this.#roller.settleUp()
    const now = await this.#transactions.now()
    const finishedBefore = now - order.retentionMillis
    const unseen = { since: now - order.forgetInstancesMillis, ended: now - order.forgetEndedNodesMillis }
    const [row] = await this.#transactions.runOne(todo, [finishedBefore, now, unseen.since, unseen.ended])
    const step = row?.['step'] as StepAt | null
    const finished = row?.['finished'] as number | null
    const stepped = step === null ? NO_STEP : await this.#transactions.run((tx) => advance(tx, step))
    const forgot = row?.['forgettable'] === true ? await this.#forgetting.run(now, unseen) : false
    const purged =
      finished !== null && (await this.#transactions.run((tx) => purge(tx, finished, finishedBefore)))
    if (stepped.more && stepped.changed === 0) await untilOthersAreThrough()
    await this.#forgetting.forgetTraces(now)
    return { more: stepped.more || forgot || purged, readied: stepped.readied + opened }
  }
}

interface StepAt {
  readonly task: number
  readonly step: Step
  readonly onlyLevel: number
}

const NO_STEP: Progress = { changed: 0, readied: 0, more: false }

async function advance(tx: Transaction, { task: id, step, onlyLevel }: StepAt): Promise<Progress> {
  const roll = await Roll.begin(tx)
  const folded = await roll.foldTask(id)
  if (folded === undefined) return NO_STEP
  const opened = await settleLanes(roll, folded.lanes)
  const { changed, readied, more } = await advanceStep(roll, folded.task, step, onlyLevel)
  await cancelLate(roll)
  await roll.flush()
  return { changed, readied: readied + opened, more }
}

/**
 * Removes rows of the task that finished first; its counters stay as its summary. It counts as purged from the first step
 * on: what is left of it is not the whole, and nobody is to take it for that. Resolves with whether to go on: what is left
 * only because somebody has it locked is left for the next time.
 */
async function purge(tx: Transaction, id: number, finishedBefore: number): Promise<boolean> {
  const roll = await Roll.begin(tx)
  const folded = await roll.foldTask(id)
  if (folded === undefined) return true
  const { task } = folded
  const isDue = task.finishedAt !== null && task.finishedAt < finishedBefore
  // A call-back may have reopened it since it was looked at, or since the step before.
  if (unfinishedOf(task.partitions) > 0 || (task.purgedAt === null && !isDue)) {
    tx.post(endPurge, [task.id])
    await roll.flush()
    return true
  }
  const { removed, isLeft } = await purgeLanes(roll, task)
  if (removed < STEP && !isLeft) {
    tx.post(endPurge, [task.id])
    tx.post(forgetPace, [task.id])
  } else tx.post(beginPurge, [task.id])
  task.purgedAt ??= await tx.now()
  roll.touch(task)
  await roll.flush()
  return removed > 0 || !isLeft
}

/** From the lowest level on, up to a step in all. */
async function purgeLanes(roll: Roll, task: TaskEntry): Promise<{ removed: number; isLeft: boolean }> {
  let removed = 0
  let isLeft = false
  for await (const lanes of roll.lanes.pagesWith('unpurged', task)) {
    removed += await purgeRows(roll, lanes, STEP - removed)
    if (removed === STEP) break
    isLeft ||= await hasRowsLeft(roll, lanes)
  }
  return { removed, isLeft }
}

/** By the rows: one that was locked is still there. Counters that were wrong must not keep all other tasks waiting. */
async function hasRowsLeft({ tx }: Roll, lanes: readonly LaneEntry[]): Promise<boolean> {
  const unpurged = lanes.filter(({ partitions, purged }) => purged < partitions.done + partitions.cancelled)
  if (unpurged.length === 0) return false
  const [row] = await tx.run(rowsLeft, [unpurged.map(({ id }) => id)])
  return row?.['left'] === true
}

async function purgeRows(roll: Roll, lanes: readonly LaneEntry[], limit: number): Promise<number> {
  const values = [lanes.map(({ id }) => id), limit]
  const rows = await roll.tx.write(remove, values)
  for (const [lane, of] of roll.lanes.grouped(rows)) {
    lane.purged += of.length
    for (const { recordCount } of of) lane.purgedRecords += recordCount
    roll.touch(lane)
  }
  return rows.length
}
