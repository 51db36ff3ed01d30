import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { ControlOrder, ControlResult } from '../../handoff/rules/control.ts'
import { earlier } from '../../handoff/rules/earlier.ts'
import type { Policy } from '../../handoff/rules/policy.ts'
import type {
  HandOffAnswers,
  HandOffBatch,
  Store,
  SweepOrder,
  SweepResult,
  TidyResult,
} from '../../handoff/store.ts'
import { audit } from './audit.ts'
import { Books } from './books.ts'
import { CallBacks } from './call-back.ts'
import { ChangeLog } from './change-log.ts'
import { type Consequences, noConsequences } from './consequences.ts'
import { Control } from './control.ts'
import { asUnavailable } from './failures.ts'
import { Front } from './front.ts'
import { InstanceRows } from './instance-rows.ts'
import { Lanes } from './lanes.ts'
import { Names } from './names.ts'
import { PartitionPages } from './partition-pages.ts'
import { Partitions } from './partitions.ts'
import { Pull } from './pull.ts'
import { Settle } from './settle.ts'
import { atOnce, inOneStep, type Steps } from './steps.ts'
import { Sweep } from './sweep.ts'
import { TaskRows } from './task-rows.ts'
import { TaskSteps } from './task-steps.ts'
import { Tidy } from './tidy.ts'

/** The verbs of the store, as they are executed: the same names, the same results, no promises. */
export type Verb = Exclude<keyof Store, 'close' | 'onHint' | 'onLead' | 'batching'>
export type Verbs = {
  [Name in Verb]: (argument: Parameters<Store[Name]>[0], now: number) => Awaited<ReturnType<Store[Name]>>
}

type Work<Result> = (consequences: Consequences) => Steps<Result>

/** One opening of the data file: the prepared statements and what is known in memory. */
export class Session {
  readonly #db: DatabaseSync
  readonly #books: Books
  readonly #front: Front
  readonly #names: Names
  readonly #lanes: Lanes
  readonly #pull: Pull
  readonly #settle: Settle
  readonly #callBacks: CallBacks
  readonly #control: Control
  readonly #partitions: Partitions
  readonly #changes: ChangeLog
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #hasRoom: () => boolean
  readonly verbs: Verbs

  constructor(db: DatabaseSync, policy: Policy, hasRoom: () => boolean) {
    this.#db = db
    this.#hasRoom = hasRoom
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#books = new Books(db)
    const { ledger } = this.#books
    this.#front = new Front(db, this.#books)
    this.#names = new Names(db)
    this.#lanes = new Lanes(db, this.#books, this.#front)
    this.#partitions = new Partitions(db, this.#books, this.#front, policy)
    const steps = new TaskSteps(db, ledger, this.#lanes)
    this.#pull = new Pull(db, this.#books, this.#front, this.#lanes, this.#names, policy)
    this.#settle = new Settle(this.#partitions, policy)
    this.#callBacks = new CallBacks(db, ledger, this.#lanes, this.#front, this.#names, policy)
    this.#control = new Control(db, ledger, this.#lanes, steps)
    const sweep = new Sweep(this.#partitions, policy)
    const tidy = new Tidy(db, ledger, this.#names, steps)
    const instances = new InstanceRows(db)
    const tasks = new TaskRows(db)
    this.#changes = new ChangeLog(db, tasks)
    const pages = new PartitionPages(db)
    const probe = db.prepare('INSERT OR REPLACE INTO probe (id, probed_at) VALUES (1, ?)')
    this.verbs = {
      handOff: (batch, now) => atOnce(this.handOffInSteps(batch, now)),
      sweep: (order, now) =>
        this.#nothingToSweep(order, now) ??
        this.#written(now, (consequences) => this.#sweep(sweep.run(order, now, consequences))),
      tidy: (order, now) => this.#tidy(tidy.duties(order, now), now),
      control: (order, now) => atOnce(this.controlInSteps(order, now)),
      recordSightings: (sightings, now) => this.#noted(now, () => instances.record(sightings, now)),
      probe: (_nothing, now) => this.#noted(now, () => void probe.run(now)),
      task: (taskId, now) => this.#looked(now, () => tasks.get(taskId, now)),
      tasks: (query, now) => this.#looked(now, () => tasks.list(query, now)),
      partitions: (query, now) => this.#looked(now, () => pages.get(query)),
      changes: (query, now) => this.#looked(now, () => this.#changes.page(query, now)),
      instance: (instanceId, now) => this.#looked(now, () => instances.get(instanceId, now)),
      instances: (query, now) => this.#looked(now, () => instances.list(query, now)),
      audit: (_nothing, now) => this.#written(now, () => audit(db)),
    }
  }

  /** One transaction all the same: until its last step nobody else may use the session. */
  handOffInSteps(batch: HandOffBatch, now: number): Steps<HandOffAnswers> {
    return this.#transaction(
      (consequences) => this.#handOff(batch, now, consequences),
      () => this.#books.note(now),
    )
  }

  /** One transaction as well. */
  controlInSteps(order: ControlOrder, now: number): Steps<ControlResult> {
    return this.#writtenInSteps(now, () => this.#control.run(order, now))
  }

  /** For an orderly end: whoever looks into the file then finds everything in its place. */
  writeUp(now: number): void {
    this.#written(now, () => undefined)
  }

  *#handOff(batch: HandOffBatch, now: number, consequences: Consequences): Steps<HandOffAnswers> {
    const settles = yield* this.#settle.settle(batch.settles, now, consequences)
    const renews = yield* this.#settle.renew(batch.renews, now, consequences)
    const undone = this.#settle.undo(batch.undos, now, consequences)
    const accepts = batch.callBacks.length === 0 || this.#hasRoom()
    const callBacks = accepts
      ? yield* this.#callBacks.run(batch.callBacks, now, consequences)
      : batch.callBacks.map(() => ({ kind: 'store_full' as const }))
    const opened = this.#lanes.settle(this.#books.ledger.touchedLanes())
    const returned = consequences.returnedTo.filter((lane) => this.#books.ledger.isOpen(lane)).length
    const pulled = this.#pull.run(batch.pulls, now)
    const dueAt = earlier(consequences.earliestDueAt, pulled.earliestDueAt)
    return {
      settles,
      renews,
      undone,
      callBacks,
      pulls: pulled.results,
      readied: consequences.readied + returned + opened + pulled.movedUp + pulled.undecided,
      nextDueInMillis: dueAt === null ? null : dueAt - now,
    }
  }

  /** Looking costs no writing: with many tasks, what was put off is thousands of rows, and this is asked every second. */
  #nothingToSweep({ expireLeases }: SweepOrder, now: number): SweepResult | undefined {
    if (!this.#books.isRead) return undefined
    const dueAt = this.#partitions.nextDueAt(expireLeases)
    if (dueAt !== null && dueAt <= now) return undefined
    const nextDueInMillis = dueAt === null ? null : dueAt - now
    return { woken: 0, expired: 0, parked: 0, more: false, nextDueInMillis }
  }

  /** A lease that expires for good may be the last that a barrier waited for. */
  #sweep(swept: SweepResult): SweepResult {
    return { ...swept, woken: swept.woken + this.#lanes.settle(this.#books.ledger.touchedLanes()) }
  }

  /** One that fails, perhaps each time, does not keep the others from being done. */
  #tidy(duties: readonly (() => TidyResult)[], now: number): TidyResult {
    let result: TidyResult = { more: false, readied: 0 }
    for (const duty of duties) {
      try {
        const { more, readied } = this.#written(now, duty)
        result = { ...result, more: result.more || more, readied: result.readied + readied }
      } catch (error) {
        if (asUnavailable(error) !== undefined) throw error
        result = { ...result, failure: result.failure ?? error }
      }
    }
    return result
  }

  /** A transaction of the hand-off: durable in the journal, written up later. */
  #noted<Result>(now: number, work: () => Result): Result {
    return atOnce(
      this.#transaction(
        () => inOneStep(work),
        () => this.#books.note(now),
      ),
    )
  }

  /** A transaction that looks for partitions by their state and changes them where they stand. */
  #written<Result>(now: number, work: (consequences: Consequences) => Result): Result {
    return atOnce(this.#writtenInSteps(now, (consequences) => inOneStep(() => work(consequences))))
  }

  #writtenInSteps<Result>(now: number, work: Work<Result>): Steps<Result> {
    const onWrittenBooks = (consequences: Consequences) => {
      this.#books.writeUp()
      this.#front.drop()
      return work(consequences)
    }
    return this.#transaction(onWrittenBooks, () => this.#books.write(now))
  }

  #looked<Result>(now: number, look: () => Result): Result {
    if (!this.#books.isRead || !this.#books.isShown) this.#noted(now, () => this.#books.writeUpTaken())
    return look()
  }

  *#transaction<Result>(work: Work<Result>, close: () => Steps<number[]>): Steps<Result> {
    if (!this.#books.isRead) atOnce(this.#committed(() => inOneStep(() => this.#books.read())))
    const { result, changed, parked } = yield* this.#committed(() => this.#concluded(work, close))
    this.#changes.note(changed, parked)
    if (this.#books.trim()) this.#front.drop()
    this.#names.trim()
    return result
  }

  *#concluded<Result>(work: Work<Result>, close: () => Steps<number[]>) {
    const consequences = noConsequences()
    this.#lanes.begin()
    const result = yield* work(consequences)
    this.#lanes.settle(this.#books.ledger.touchedLanes())
    const changed = yield* close()
    return { result, changed, parked: yield* this.#changes.notices(consequences.parked) }
  }

  *#committed<Result>(work: () => Steps<Result>): Steps<Result> {
    this.#begin.run()
    try {
      const result = yield* work()
      this.#commit.run()
      return result
    } catch (error) {
      // A failed commit may or may not have ended the transaction; memory is wrong in either case.
      this.#books.forget()
      this.#front.drop()
      this.#front.rewind()
      this.#names.forget()
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      throw error
    }
  }
}
