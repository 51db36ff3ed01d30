import type { WallClock } from '../../../handoff/clock.ts'
import type { Connection } from './connection.ts'
import { isConsequence } from './failures.ts'
import { NOW, type Statement, statement } from './statement.ts'
import { nowStatement, type Transaction, type TransactionOptions } from './transaction.ts'

/**
 * A connection can break after COMMIT was sent and before its answer came: then nobody knows whether
 * it happened. So each transaction that writes also counts up the mark of its connection, and
 * whoever is in doubt waits for the end of its session and reads the mark; see doubt.ts.
 * One row per connection, rewritten in place: no two transactions meet on it.
 */
const mark = statement(
  'mark',
  `UPDATE baton.commit_mark SET number = $2, marked_at = ${NOW} WHERE session = $1`,
)

/** One try of a transaction, on one connection. */
export class Attempt implements Transaction {
  readonly #connection: Connection
  readonly #kind: NonNullable<TransactionOptions['kind']>
  readonly #clock: WallClock | undefined
  #now: Promise<number> | undefined
  #wrote = false
  #isMarked = false
  #knownNow: number | null = null
  readonly #posted: Promise<unknown>[] = []
  /** What the transaction comes to, once COMMIT has been sent; it may be nothing. */
  committing: { readonly result: unknown } | undefined

  constructor(
    connection: Connection,
    kind: NonNullable<TransactionOptions['kind']>,
    clock: WallClock | undefined,
  ) {
    this.#connection = connection
    this.#kind = kind
    this.#clock = clock
  }

  async make<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    const begun = this.#connection.exec(this.#begin())
    begun.catch(() => {})
    const result = await work(this).catch(async (error: unknown) => {
      await begun
      throw await this.#causeOf(error)
    })
    await begun
    if (this.#kind === 'durable' && this.#wrote) await this.#commitMarked(result)
    else await Promise.all([...this.#posted, this.#commit()])
    return result
  }

  run<Found>(statement: Statement<Found>, values?: readonly unknown[]): Promise<Found[]> {
    return this.#connection.run(statement, values)
  }

  write<Found>(statement: Statement<Found>, values?: readonly unknown[]): Promise<Found[]> {
    this.#wrote = true
    return this.run(statement, values)
  }

  post(statement: Statement, values?: readonly unknown[]): void {
    const answer = this.write(statement, values)
    answer.catch(() => {})
    this.#posted.push(answer)
  }

  postMarked(statement: Statement, values: readonly unknown[]): void {
    this.#isMarked = true
    this.post(statement, [...values, ...this.#nextMark()])
  }

  get knownNow(): number | null {
    this.#knownNow ??= this.#clock?.() ?? null
    return this.#knownNow
  }

  learnNow(now: number): void {
    if (this.knownNow === null) this.#knownNow = now
  }

  now(): Promise<number> {
    const known = this.knownNow
    if (known !== null) return Promise.resolve(known)
    this.#now ??= this.#askNow()
    return this.#now
  }

  async #askNow(): Promise<number> {
    const [row] = await this.#connection.run(nowStatement)
    this.learnNow(row?.['now'] as number)
    return this.knownNow ?? 0
  }

  #nextMark(): [session: string, number: number] {
    this.#connection.lastMark += 1
    return [this.#connection.session, this.#connection.lastMark]
  }

  /** After a posted statement has failed, those that follow it say only that the transaction is over. */
  async #causeOf(error: unknown): Promise<unknown> {
    if (!isConsequence(error)) return error
    const posted = await Promise.allSettled(this.#posted)
    const failures = posted.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
    return failures.find((failure) => !isConsequence(failure)) ?? error
  }

  async rollBack(): Promise<void> {
    try {
      await this.#connection.exec('ROLLBACK')
    } catch {
      this.#connection.destroy()
    }
  }

  #begin(): string {
    const connection = this.#connection
    if (this.#kind === 'reading') return connection.begin('REPEATABLE READ READ ONLY')
    if (this.#kind === 'relaxed') return `${connection.begin()}; SET LOCAL synchronous_commit = off`
    return connection.beginMarked
  }

  async #commitMarked(result: unknown): Promise<void> {
    this.committing = { result }
    const marked = this.#isMarked ? undefined : this.#connection.run(mark, this.#nextMark())
    // Answers come in order, so the first to fail is the cause and the others are consequences.
    await Promise.all([...this.#posted, marked, this.#commit()])
  }

  /** PostgreSQL answers the COMMIT of a transaction that failed with ROLLBACK, not with an error. */
  async #commit(): Promise<void> {
    const tag = await this.#connection.exec('COMMIT')
    if (tag !== 'COMMIT') throw new Error('the transaction had failed before it was committed')
  }
}
