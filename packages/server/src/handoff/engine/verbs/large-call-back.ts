import type { Disk } from '../../disk.ts'
import type { PartitionDescriptor } from '../../partition.ts'
import { addRun } from '../../rules/index-runs.ts'
import {
  type BatchedCallBack,
  type CallBackResult,
  type HandOffAnswers,
  StoreUnavailable,
} from '../../store.ts'
import type { StagedIds } from '../../stored.ts'
import type { Exclusive } from '../exclusive.ts'
import { taskNamed } from '../read-rows.ts'
import type { Runner } from '../runner.ts'
import { concludeTasks, moveBarriers } from '../task-updates.ts'
import { newTask } from '../tasks.ts'
import type { Transaction } from '../transaction.ts'
import {
  accept,
  type ComparedLane,
  type Comparison,
  compare,
  countCallBack,
  descriptorsOf,
  isMixedWith,
  locate,
  type NewLevelRows,
  newLevelRowsOf,
  refusalOfCallBack,
} from './call-back.ts'

/**
 * Call-backs that are too large for one entry. The array is compared with the known partitions outside of any
 * transaction. One transaction then marks the task and reserves ids. Rows are staged in pieces, concurrently
 * with other batches. A last transaction makes all of them count, or none. A task has one at a time.
 */
export class LargeCallBacks {
  readonly #disk: Disk
  readonly #runner: Runner
  readonly #exclusive: Exclusive
  /** By task: the call-back that must end before the task takes another. */
  readonly #running = new Map<string, Promise<unknown>>()
  readonly #pieces = new Set<Promise<void>>()

  constructor(disk: Disk, runner: Runner, exclusive: Exclusive) {
    this.#disk = disk
    this.#runner = runner
    this.#exclusive = exclusive
  }

  isLarge({ callBack: { partitions } }: BatchedCallBack): boolean {
    return partitions.length > this.#runner.limits.largeCallBack
  }

  /** Whether one of these is for a task with a large call-back that has not ended. */
  isRunning(callBacks: readonly BatchedCallBack[]): boolean {
    return callBacks.some(({ callBack }) => this.#running.has(callBack.taskId))
  }

  async whenEnded(callBacks: readonly BatchedCallBack[]): Promise<void> {
    for (const { callBack } of callBacks) await this.#running.get(callBack.taskId)?.catch(() => undefined)
  }

  /** Resolves when no large call-back is running. */
  async whenAllEnded(): Promise<void> {
    await Promise.allSettled(this.#running.values())
  }

  async run(batched: BatchedCallBack): Promise<HandOffAnswers> {
    const { taskId } = batched.callBack
    const before = this.#running.get(taskId)
    const stored = (async () => {
      await before?.catch(() => undefined)
      return this.#run(batched)
    })()
    this.#running.set(taskId, stored)
    try {
      return await stored
    } finally {
      if (this.#running.get(taskId) === stored) this.#running.delete(taskId)
    }
  }

  /** Removes the rows of call-backs from before a restart, or from memory that was dropped. */
  async removeAbandonedRows(): Promise<void> {
    await Promise.allSettled(this.#pieces)
    const { tasks } = await this.#runner.open()
    for (const { taskId, staging } of [...tasks.values()].filter((task) => task.staging !== null)) {
      if (staging !== null) await this.#disk.unstage(staging)
      await this.#runner.transact(async (tx) => {
        const task = await taskNamed(tx, taskId)
        // Another node may have led in the meantime, and left other rows.
        if (task?.staging?.first === staging?.first) await setStaging(tx, taskId, null)
      })
    }
  }

  async #run(batched: BatchedCallBack): Promise<HandOffAnswers> {
    // After a new memory, the comparison may be outdated and staged rows may be gone.
    let epoch = this.#runner.epoch
    const { lanes } = await this.#exclusive.complete(() => {
      epoch = this.#runner.epoch
      return this.#runner.transact(
        (tx) => locate(tx, batched.callBack),
        () => false,
      )
    })
    const comparison = await compare(this.#runner.context, batched.callBack, lanes, () => undefined)
    const opened = await this.#exclusive.complete(async () => {
      if (this.#runner.epoch !== epoch) throw interrupted()
      return this.#runner.transact((tx) => this.#open(tx, batched, comparison, lanes))
    })
    if ('callBacks' in opened) return opened
    try {
      const arrivals = await this.#stage(batched, comparison, opened, lanes, epoch)
      return await this.#exclusive.complete(() =>
        this.#close(batched, comparison, arrivals, opened.ids, epoch),
      )
    } catch (error) {
      // Dropping memory ensures that staged rows are removed before anything else is done with the task.
      if (this.#runner.epoch === epoch) this.#runner.drop()
      throw error
    }
  }

  /** Marks the task and reserves ids for rows and for new lanes. */
  async #open(
    tx: Transaction,
    batched: BatchedCallBack,
    comparison: Comparison,
    known: ReadonlyMap<number, { readonly id: number }>,
  ): Promise<HandOffAnswers | Opened> {
    const { callBack } = batched
    await locate(tx, callBack)
    const refusal = refusalOfCallBack(tx, comparison, batched)
    if (refusal !== undefined) return answerOf(refusal)
    const { fresh, accepted } = comparison
    if (accepted === 0) return await complete(tx, batched, comparison, [])
    const first = tx.issue('partition', accepted)
    const ids = { first, last: first + accepted - 1 }
    const lanes = new Map<number, number>()
    for (const level of fresh.keys()) lanes.set(level, known.get(level)?.id ?? tx.issue('lane'))
    await setStaging(tx, callBack.taskId, ids)
    return { ids, lanes, now: tx.now }
  }

  /** A piece can hold rows of several levels: an array may have thousands of levels with one row each. */
  async #stage(
    batched: BatchedCallBack,
    { fresh }: Comparison,
    { ids, lanes, now }: Opened,
    known: ReadonlyMap<number, ComparedLane>,
    epoch: number,
  ): Promise<NewLevelRows[]> {
    const { piece } = this.#runner.limits
    const arrivals: NewLevelRows[] = []
    let nextId = ids.first
    let rows: PartitionDescriptor[] = []
    for (const [level, partitions] of fresh) {
      const lane = lanes.get(level) as number
      const inMixedLane = isMixedWith(known.get(level), partitions)
      let arrival: NewLevelRows | undefined
      for (let from = 0; from < partitions.length; ) {
        const part = descriptorsOf(
          { lane, inMixedLane, firstId: nextId, now },
          partitions.slice(from, from + piece - rows.length),
          batched,
        )
        from += part.length
        nextId += part.length
        arrival = joined(arrival, newLevelRowsOf(level, part))
        rows.push(...part)
        if (rows.length < piece) continue
        await this.#stagePiece(rows, epoch)
        rows = []
      }
      if (arrival !== undefined) arrivals.push(arrival)
    }
    if (rows.length > 0) await this.#stagePiece(rows, epoch)
    return arrivals
  }

  async #stagePiece(rows: readonly PartitionDescriptor[], epoch: number): Promise<void> {
    if (this.#runner.epoch !== epoch) throw interrupted()
    const staged = this.#disk.stage(rows)
    this.#pieces.add(staged)
    await staged.finally(() => this.#pieces.delete(staged))
    await this.#runner.yieldToEventLoop()
  }

  /** Checks again for refusals: the task may have been cancelled or sealed in the meantime. */
  async #close(
    batched: BatchedCallBack,
    comparison: Comparison,
    arrivals: readonly NewLevelRows[],
    ids: StagedIds,
    epoch: number,
  ): Promise<HandOffAnswers> {
    if (this.#runner.epoch !== epoch) throw interrupted()
    const answers = await this.#runner.transact(async (tx) => {
      const { task } = await locate(tx, batched.callBack)
      // Another node has created the lane, so this node is no longer the leader. Its append would fail.
      if (arrivals.some(({ level, lane }) => (task?.lanes.get(level)?.id ?? lane) !== lane))
        throw interrupted()
      const refusal = refusalOfCallBack(tx, comparison, batched)
      if (refusal !== undefined) return answerOf(refusal)
      await setStaging(tx, batched.callBack.taskId, null)
      return await complete(tx, batched, comparison, arrivals)
    })
    if (answers.callBacks[0]?.kind !== 'stored') {
      // In this order: staged rows of a task without the mark would never be removed.
      await this.#disk.unstage(ids)
      await this.#runner.transact((tx) => setStaging(tx, batched.callBack.taskId, null))
    }
    return answers
  }
}

/** What a small call-back and the end of its batch do, too. */
async function complete(
  tx: Transaction,
  batched: BatchedCallBack,
  { accepted, duplicates }: Comparison,
  arrivals: readonly NewLevelRows[],
): Promise<HandOffAnswers> {
  accept(tx, batched, arrivals)
  countCallBack(tx, batched.producer, accepted)
  await moveBarriers(tx)
  await concludeTasks(tx)
  const { count, kinds } = tx.newlyReady
  return { ...answerOf({ kind: 'stored', accepted, duplicates }), newlyReady: count, newlyReadyOf: kinds }
}

const answerOf = (result: CallBackResult): HandOffAnswers => ({
  settles: [],
  renews: [],
  undone: 0,
  callBacks: [result],
  pulls: [],
  newlyReady: 0,
  nextDueInMillis: null,
})

async function setStaging(tx: Transaction, taskId: string, staging: StagedIds | null): Promise<void> {
  const task = (await taskNamed(tx, taskId)) ?? newTask(tx, taskId)
  tx.touchTask(task)
  task.staging = staging
}

/** Merges two consecutive pieces of one level. */
function joined(before: NewLevelRows | undefined, arrival: NewLevelRows): NewLevelRows {
  if (before === undefined) return arrival
  const runs = before.runs.map((run) => ({ ...run }))
  for (const { first, last } of arrival.runs) addRun(runs, first, last)
  const tables = new Map(before.tables)
  for (const [table, added] of arrival.tables) {
    const { firstId, partitions, records } = tables.get(table) ?? { ...added, partitions: 0, records: 0 }
    tables.set(table, {
      firstId,
      partitions: partitions + added.partitions,
      records: records + added.records,
    })
  }
  return {
    ...before,
    count: before.count + arrival.count,
    records: before.records + arrival.records,
    lastId: arrival.lastId,
    runs,
    tables,
  }
}

const interrupted = () =>
  new StoreUnavailable(
    'store_unavailable',
    'the store failed while the call-back was being written, and nothing of it was stored; send it again',
  )

interface Opened {
  readonly ids: StagedIds
  /** By level. */
  readonly lanes: ReadonlyMap<number, number>
  readonly now: number
}
