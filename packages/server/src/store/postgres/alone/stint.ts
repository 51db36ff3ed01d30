import type { Secrets } from '../../../handoff/lease-secrets.ts'
import type { Policy } from '../../../handoff/policy.ts'
import type { HandOffAnswers, HandOffBatch } from '../../../handoff/store.ts'
import type { PlainBatch } from '../pull/plain-hand-off.ts'
import { sharedOut } from '../pull/shared-out.ts'
import type { Shrinking } from '../queues/shrinking.ts'
import type { Names } from '../rows/names.ts'
import type { Connection } from '../session/connection.ts'
import { asUnavailable, isSessionOver } from '../session/failures.ts'
import type { Transactions } from '../session/transactions.ts'
import type { Filling } from '../windows/filling.ts'
import { type FrontPartition, KnownFront } from './known-front.ts'
import { KnownLeases } from './known-leases.ts'
import { notedLeases } from './noted-leases.ts'
import {
  NOTES_OF_A_RUN,
  type Note,
  type NotedFinish,
  type NotedLease,
  NoteInDoubt,
  writeNote,
} from './notes.ts'
import { writeUp } from './write-up.ts'

/** How long what is noted may wait to be written up. Whoever looks has it written up first. */
const WRITE_UP_MILLIS = 100
/** With so many partitions in the notes they are written up at once: whoever has to end a stint waits for it. */
const MOST_NOTED = 4000

export interface StintParts {
  readonly transactions: Transactions
  readonly policy: Policy
  readonly names: Names
  readonly secrets: Secrets
  readonly filling: Filling
  readonly shrinking: Shrinking
  /** Told how many partitions became ready. */
  readonly readied: (count: number) => void
  /** Told when counters have changed. */
  readonly counted: () => void
  readonly failed: (error: unknown) => void
}

/** A time that this node is alone: it hands out from memory, notes what it answers, and writes it up a moment later. */
export class Stint {
  readonly #parts: StintParts
  readonly #connection: Connection
  readonly #front: KnownFront
  readonly #leases: KnownLeases
  readonly #underWay = new Set<Promise<unknown>>()
  /** What was noted and is not written up: the rows say otherwise. */
  #notes: Note[] = []
  #noted = 0
  readonly #keys = new Set<string>()
  /** Lanes whose tripwire was handed out. */
  readonly #tripped = new Set<number>()
  #lastNumber: number
  readonly #greatestNumber: number
  #reading: Promise<void> | undefined
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #isOver = false
  #isLost = false

  constructor(parts: StintParts, connection: Connection, run: number) {
    this.#parts = parts
    this.#connection = connection
    this.#lastNumber = run
    this.#greatestNumber = run + NOTES_OF_A_RUN - 1
    this.#front = new KnownFront(parts.transactions, parts.names)
    this.#leases = new KnownLeases(parts.transactions)
  }

  /** Resolves with how many partitions are there to be handed out. */
  async begin(): Promise<number> {
    // Behind a window that is about to be filled the order cannot be told.
    await this.#parts.filling.idle()
    await this.#front.readOn()
    return this.#front.length
  }

  get isLost(): boolean {
    return this.#isLost || this.#connection.isLost
  }

  /** Undefined for what has to be done by transactions, after the end of this stint. */
  async handOff(batch: HandOffBatch, plain: PlainBatch): Promise<HandOffAnswers | undefined> {
    const { settlements, appetite } = plain
    await this.#leases.learn(settlements)
    // One that is under way may have begun before the last tripwire was handed out.
    for (let times = 0; times < 2 && this.#front.length < appetite; times += 1) await this.#readOn()
    if (this.#isOver || this.isLost || this.#lastNumber === this.#greatestNumber) return undefined
    if (this.#front.length < appetite) return undefined
    // From here to the note nothing may be waited for: others know what is taken, settled and keyed.
    if (batch.pulls.some(({ key }) => key !== null && this.#keys.has(key))) return undefined
    const finished = this.#leases.settle(settlements)
    if (finished === undefined) return undefined
    const noting = this.#note(batch, this.#front.take(appetite), finished)
    this.#underWay.add(noting)
    return noting.finally(() => this.#underWay.delete(noting))
  }

  /** What was answered until now is in the rows when it resolves. */
  async writtenUp(): Promise<void> {
    await Promise.allSettled(this.#underWay)
    // It takes the notes that are there when it begins: those that the one under way did not take, the next one does.
    await this.#writing
    await (this.#notes.length > 0 ? this.#writeUp() : this.#writing)
  }

  /** Resolves when all is written up, with whether it is. */
  async end(): Promise<boolean> {
    this.#isOver = true
    await this.writtenUp()
    // Windows whose tripwire was handed out since the last reading are filled before others claim.
    await this.#reading
    if (this.#tripped.size > 0) await this.#readOn()
    clearTimeout(this.#timer)
    return !this.isLost
  }

  async #note(
    batch: HandOffBatch,
    taken: readonly FrontPartition[],
    finished: readonly NotedFinish[],
  ): Promise<HandOffAnswers | undefined> {
    const { transactions, policy, names } = this.#parts
    const secrets = taken.map(() => this.#parts.secrets.next())
    const given = notedLeases(batch.pulls, taken, secrets, policy, names)
    const keys = batch.pulls.flatMap(({ key }) => key ?? [])
    this.#remember(given, keys)
    this.#lastNumber += 1
    const number = this.#lastNumber
    const at = await writeNote(
      this.#connection,
      { number, at: transactions.knownNow, given, finished },
      keys,
    ).catch((error: unknown) => this.#fail(error, secrets))
    if (at === undefined) {
      // A key is known: nothing was noted, and what is in memory is not true any more.
      this.#isOver = true
      return undefined
    }
    this.#notes.push({ number, at, given, finished })
    this.#noted += given.length
    this.#schedule()
    const rows = taken.map(({ row, names: of }, position) => ({
      row: { ...row, term: given[position]?.term, secret: secrets[position] },
      names: of,
    }))
    const { results, earliestDueAt } = sharedOut(batch.pulls, secrets, rows, policy, at)
    return {
      settles: batch.settles.map(({ settlements }) => settlements.map(() => null)),
      renews: [],
      undone: 0,
      callBacks: [],
      pulls: results,
      readied: 0,
      nextDueInMillis: earliestDueAt === null ? null : earliestDueAt - at,
    }
  }

  #remember(given: readonly NotedLease[], keys: readonly string[]): void {
    for (const key of keys) this.#keys.add(key)
    for (const lease of given) {
      this.#leases.give(lease)
      if (lease.refill) this.#tripped.add(lease.lane.id)
    }
  }

  #fail(error: unknown, secrets: readonly string[]): never {
    this.#lose()
    if (isSessionOver(error)) throw new NoteInDoubt(secrets, { cause: error })
    throw asUnavailable(error) ?? error
  }

  #schedule(): void {
    if (this.#front.isShort || this.#tripped.size > 0) void this.#readOn()
    if (this.#noted >= MOST_NOTED) void this.#writeUp()
    else this.#timer ??= setTimeout(() => void this.#writeUp(), WRITE_UP_MILLIS)
  }

  /** Fills windows and reads on; who comes while that is under way waits for its end. */
  #readOn(): Promise<void> {
    this.#reading ??= this.#orLose(this.#fillAndRead()).finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #fillAndRead(): Promise<void> {
    let isMore = true
    while (isMore && !this.isLost) {
      for (const lane of this.#tripped) {
        this.#tripped.delete(lane)
        await this.#fill(lane)
      }
      isMore = !this.#isOver && this.#front.isShort && (await this.#readSome())
    }
  }

  /** False when there is nothing more. */
  async #readSome(): Promise<boolean> {
    const isMore = await this.#front.readOn()
    const { inTheWay } = this.#front
    if (inTheWay === undefined) return isMore
    await this.#fill(inTheWay)
    return true
  }

  async #fill(lane: number): Promise<void> {
    this.#parts.readied(await this.#parts.filling.fillOne(lane))
    this.#front.wasFilled(lane)
  }

  /** Writes up; who comes while that is under way waits for its end. */
  #writeUp(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writing ??= this.#orLose(this.#writeNotesUp()).finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  async #orLose(work: Promise<void>): Promise<void> {
    try {
      await work
    } catch (error) {
      this.#lose()
      if (asUnavailable(error) === undefined) this.#parts.failed(error)
    }
  }

  async #writeNotesUp(): Promise<void> {
    const notes = this.#notes
    this.#notes = []
    this.#noted = 0
    if (this.isLost || notes.length === 0) return
    const { transactions, policy, counted, shrinking, failed } = this.#parts
    const written = await transactions.run((tx) => writeUp(tx, notes, policy))
    if (written === undefined) {
      this.#lose()
      return
    }
    if (written.missing > 0) failed(new Error(`${written.missing} partitions were not as it was noted`))
    shrinking.take(written.setsLeft)
    for (const { given, finished } of notes) {
      for (const { key } of given) if (key !== null) this.#keys.delete(key)
      this.#leases.forget(given, finished)
    }
    counted()
  }

  /** Whoever comes next writes up what was noted. */
  #lose(): void {
    this.#isLost = true
    this.#notes = []
    this.#connection.destroy()
  }
}
