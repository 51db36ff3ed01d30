import { resolve } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { systemClock, type WallClock } from '../../handoff/clock.ts'
import type { ControlOrder } from '../../handoff/rules/control.ts'
import type { Policy } from '../../handoff/rules/policy.ts'
import {
  type Batching,
  type HandOffAnswers,
  type HandOffBatch,
  type Store,
  StoreUnavailable,
} from '../../handoff/store.ts'
import { OpenFile } from './open-file.ts'
import type { Session, Verb } from './session.ts'
import { type Steps, turnByTurn } from './steps.ts'

export interface SqliteStoreOptions {
  readonly folder: string
  readonly policy: Policy
  readonly clock?: WallClock
  /** For what an operator should know of the folder, in words. */
  readonly warn?: (text: string) => void
}

/** A larger call-back is written in steps; up to here it takes a few milliseconds. */
const LARGE_CALL_BACK = 2000

/** More leases, or partitions that are named, are seen to in steps: each has a row that is looked up and written. */
const MANY_ROWS = 1000

/**
 * Many requests that are each of a middling size share a transaction only up to here: 16 pulls of 1000 partitions in one
 * held the event loop for 200 to 300 ms.
 */
const BATCHING: Batching = { atOnce: 1, full: 1000, fullAtOnce: 1 }

/** Resolves when the data folder is locked, migrated and ready; rejects with StoreRefused when it must not be used. */
export async function openSqliteStore({
  folder,
  policy,
  clock = systemClock,
  warn,
}: SqliteStoreOptions): Promise<Store> {
  const file = new OpenFile(resolve(folder), policy)
  for (const text of file.lock()) warn?.(text)
  const runner = new VerbRunner(file, clock)
  // Answered a turn later: whoever takes one step after the other, or reads page after page, must let others in between.
  const verb =
    <Name extends Verb>(name: Name) =>
    async (...[argument]: Parameters<Store[Name]>): Promise<Awaited<ReturnType<Store[Name]>>> => {
      try {
        return await runner.run(({ verbs }, now) => verbs[name](argument, now))
      } finally {
        await nextTurn()
      }
    }
  const control = verb('control')
  return {
    handOff: (batch: HandOffBatch) => runner.handOff(batch),
    sweep: verb('sweep'),
    tidy: verb('tidy'),
    control: (order) =>
      namesMany(order)
        ? runner.inSteps((session, now) => session.controlInSteps(order, now))
        : control(order),
    task: verb('task'),
    tasks: verb('tasks'),
    partitions: verb('partitions'),
    changes: verb('changes'),
    recordSightings: verb('recordSightings'),
    instance: verb('instance'),
    instances: verb('instances'),
    probe: verb('probe'),
    audit: verb('audit'),
    close: () => runner.close(),
    batching: BATCHING,
  }
}

/**
 * Runs one verb after the other. SQLite is synchronous, and so is this: a transaction keeps the event loop until it is on
 * the disk. On a thread of its own it was slower, because taking batches there and back cost more than the loop could do
 * meanwhile (decision 0023).
 */
class VerbRunner {
  readonly #file: OpenFile
  readonly #clock: WallClock
  /** Resolves when the transaction that is being written in steps has ended, well or not. */
  #inSteps: Promise<void> | undefined
  #closed = false

  constructor(file: OpenFile, clock: WallClock) {
    this.#file = file
    this.#clock = clock
  }

  async handOff(batch: HandOffBatch): Promise<HandOffAnswers> {
    if (isLarge(batch)) return this.inSteps((session, now) => session.handOffInSteps(batch, now))
    return this.run(({ verbs }, now) => verbs.handOff(batch, now))
  }

  async inSteps<Result>(work: (session: Session, now: number) => Steps<Result>): Promise<Result> {
    while (this.#inSteps !== undefined) await this.#inSteps
    const result = this.#guarded((session, now) => turnByTurn(work(session, now)))
    const ended = () => {
      this.#inSteps = undefined
    }
    this.#inSteps = result.then(ended, ended)
    return result
  }

  /** One after the other, in the order of the calls: whoever comes while a transaction is written in steps waits. */
  async run<Result>(work: (session: Session, now: number) => Result): Promise<Result> {
    while (this.#inSteps !== undefined) await this.#inSteps
    return this.#guarded(work)
  }

  async close(): Promise<void> {
    while (this.#inSteps !== undefined) await this.#inSteps
    if (this.#closed) return
    this.#closed = true
    this.#file.close(this.#clock())
  }

  async #guarded<Result>(work: (session: Session, now: number) => Result | Promise<Result>): Promise<Result> {
    if (this.#closed) throw new StoreUnavailable('store_unavailable', 'the store is closed')
    try {
      return await work(this.#file.session(), this.#clock())
    } catch (error) {
      throw this.#file.failed(error)
    }
  }
}

function isLarge({ callBacks, settles, renews }: HandOffBatch): boolean {
  if (callBacks.some(({ callBack }) => callBack.partitions.length > LARGE_CALL_BACK)) return true
  let leases = 0
  for (const { settlements } of settles) leases += settlements.length
  for (const renew of renews) leases += renew.leases.length
  return leases > MANY_ROWS
}

function namesMany(order: ControlOrder): boolean {
  return order.verb === 'retry' && order.partitions !== null && order.partitions.length > MANY_ROWS
}
