import type { Secrets } from '../../../handoff/lease-secrets.ts'
import type { Policy } from '../../../handoff/rules/policy.ts'
import type { HandOffAnswers, HandOffBatch } from '../../../handoff/store.ts'
import type { PlainBatch } from '../pull/plain-hand-off.ts'
import { sharedOut } from '../pull/shared-out.ts'
import type { Shrinking } from '../queues/shrinking.ts'
import type { Connection } from '../session/connection.ts'
import { asUnavailable, isSessionOver } from '../session/failures.ts'
import type { FrontPartition } from './known-front.ts'
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
import { ReadAhead, type ReadAheadParts } from './read-ahead.ts'
import { UnwrittenNotes } from './unwritten-notes.ts'
import type { WrittenUp } from './write-up.ts'

export interface StintParts extends ReadAheadParts {
  readonly policy: Policy
  readonly secrets: Secrets
  readonly shrinking: Shrinking
  /** Told when counters have changed. */
  readonly counted: () => void
  readonly failed: (error: unknown) => void
}

/** A time that this node is alone: it hands out from memory, notes what it answers, and writes it up a moment later. */
export class Stint {
  readonly #parts: StintParts
  readonly #connection: Connection
  readonly #front: ReadAhead
  readonly #leases: KnownLeases
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #notes: UnwrittenNotes
  /** Of pulls that are noted and not written up. */
  readonly #keys = new Set<string>()
  #lastNumber: number
  readonly #greatestNumber: number
  #isOver = false
  #isLost = false

  constructor(parts: StintParts, connection: Connection, run: number) {
    this.#parts = parts
    this.#connection = connection
    this.#lastNumber = run
    this.#greatestNumber = run + NOTES_OF_A_RUN - 1
    this.#front = new ReadAhead(parts)
    this.#leases = new KnownLeases(parts.transactions)
    this.#notes = new UnwrittenNotes(parts.transactions, parts.policy, {
      written: (notes, written) => this.#conclude(notes, written),
      isDue: () => void this.#orLose(this.#notes.writeUpSome()),
    })
  }

  /** Resolves with how many partitions are there to be handed out. */
  async begin(): Promise<number> {
    await this.#front.begin()
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
    for (let times = 0; times < 2 && this.#front.length < appetite; times += 1)
      await this.#orLose(this.#front.readOn())
    while (this.#notes.areTooMany && !this.isLost) await this.#orLose(this.#notes.writeUpSome())
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
    await this.#orLose(this.#notes.writeUp())
  }

  /** Resolves when all is written up, with whether it is. */
  async end(): Promise<boolean> {
    this.#isOver = true
    await this.writtenUp()
    if (!this.isLost) await this.#orLose(this.#front.end())
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
    this.#notes.add({ number, at, given, finished })
    if (this.#front.isDue) void this.#orLose(this.#front.readOn())
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
    for (const lease of given) this.#leases.give(lease)
  }

  #fail(error: unknown, secrets: readonly string[]): never {
    this.#lose()
    if (isSessionOver(error)) throw new NoteInDoubt(secrets, { cause: error })
    throw asUnavailable(error) ?? error
  }

  #conclude(notes: readonly Note[], written: WrittenUp | undefined): void {
    const { counted, shrinking, failed } = this.#parts
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

  async #orLose(work: Promise<void>): Promise<void> {
    try {
      await work
    } catch (error) {
      // Several may have waited for the same.
      if (!this.#isLost && asUnavailable(error) === undefined) this.#parts.failed(error)
      this.#lose()
    }
  }

  /** Whoever comes next writes up what was noted. */
  #lose(): void {
    this.#isLost = true
    this.#notes.abandon()
    this.#connection.destroy()
  }
}
