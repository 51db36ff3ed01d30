import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../handoff/clock.ts'
import { StoreUnavailable } from '../../handoff/store.ts'
import type { Connection, Row } from './connection.ts'
import type { Connections } from './connections.ts'
import { asUnavailable, isSessionOver, mayRunAgain } from './failures.ts'
import { NOW, type Statement, statement } from './statement.ts'

/** One transaction. Statements that need no answer of one another may be sent in one go. */
export interface Transaction {
  run(statement: Statement, values?: readonly unknown[]): Promise<Row[]>
  /** As `run`, for a statement that changes something: a transaction without any needs no durable commit. */
  write(statement: Statement, values?: readonly unknown[]): Promise<Row[]>
  /**
   * As `write`, for when nothing depends on the answer: it is sent, and the commit waits for it. A
   * pull takes two round trips this way instead of four.
   */
  post(statement: Statement, values?: readonly unknown[]): void
  /**
   * As `post`, for a statement that also counts up the mark of its connection: its parameters after
   * `values` are the connection's session and the number. Saves the commit a statement.
   */
  postMarked(statement: Statement, values: readonly unknown[]): void
  /** The database's clock, in milliseconds: the same throughout the transaction, asked for when first needed. */
  now(): Promise<number>
  /** What `now` is, if that is known without asking: a clock that was handed in, or what was learned. */
  readonly knownNow: number | null
  /** A statement that reads the clock on the way saves the others the question. */
  learnNow(now: number): void
}

export interface TransactionOptions {
  /**
   * `durable` is what a request is answered on. `relaxed` may be lost by a crash of the server,
   * for work that is then done again by itself. `reading` sees one state of everything.
   */
  readonly kind?: 'durable' | 'relaxed' | 'reading'
}

const nowStatement = statement('now', `SELECT ${NOW} AS now`)

/**
 * A connection can break after COMMIT was sent and before its answer came: then nobody knows whether
 * it happened. So each transaction that writes also counts up the mark of its connection, and
 * whoever is in doubt reads the mark. Reading locks it, and so waits for a commit that is under way.
 * One row per connection, rewritten in place: no two transactions meet on it.
 */
const mark = statement(
  'mark',
  `UPDATE baton.commit_mark SET number = $2, marked_at = ${NOW} WHERE session = $1`,
)
const readMark = statement('read-mark', 'SELECT number FROM baton.commit_mark WHERE session = $1 FOR UPDATE')

/** Conflicts with other transactions; each try begins anew. */
const TRIES = 6
/** Connections that turn out to be dead one after another: after a restart every idle one is. */
const LOST_CONNECTIONS = 12
const DOUBT_MILLIS = 10_000

export class Transactions {
  readonly #connections: Connections
  readonly #clock: Clock | undefined

  constructor(connections: Connections, clock: Clock | undefined) {
    this.#connections = connections
    this.#clock = clock
  }

  async run<Result>(
    work: (tx: Transaction) => Promise<Result>,
    { kind = 'durable' }: TransactionOptions = {},
  ): Promise<Result> {
    let conflicts = 0
    let lost = 0
    while (true) {
      const connection = await this.#take()
      const attempt = new Attempt(connection, kind, this.#clock)
      try {
        const result = await attempt.make(work)
        this.#connections.giveBack(connection)
        return result
      } catch (error) {
        if (isSessionOver(error)) {
          connection.destroy()
          this.#connections.giveBack(connection)
          if (attempt.committing !== undefined && (await this.#wasCommitted(connection)))
            return attempt.committing as Result
          lost += 1
          if (lost < LOST_CONNECTIONS) continue
        } else {
          await attempt.rollBack()
          this.#connections.giveBack(connection)
          if (mayRunAgain(error) && ++conflicts < TRIES) {
            await sleep(Math.random() * 5 * 2 ** conflicts)
            continue
          }
        }
        throw asUnavailable(error) ?? error
      }
    }
  }

  /** What `now` is, if that is known without asking. */
  get knownNow(): number | null {
    return this.#clock?.() ?? null
  }

  /**
   * One statement that is a whole durable transaction, in one round trip. Its parameters after `values`
   * are the connection's session and the number of the mark, which it has to write. Undefined when it
   * was committed and the answer got lost.
   */
  async runAlone(statement: Statement, values: readonly unknown[]): Promise<Row[] | undefined> {
    let conflicts = 0
    let lost = 0
    while (true) {
      // Without a turn of the event loop: the server works while the last answers are written.
      const connection = this.#connections.takeIdle() ?? (await this.#take())
      connection.lastMark += 1
      try {
        const rows = await connection.runAlone(statement, [
          ...values,
          connection.session,
          connection.lastMark,
        ])
        this.#connections.giveBack(connection)
        return rows
      } catch (error) {
        const isOver = isSessionOver(error)
        if (isOver) connection.destroy()
        this.#connections.giveBack(connection)
        if (isOver) {
          if (await this.#wasCommitted(connection)) return undefined
          lost += 1
          if (lost < LOST_CONNECTIONS) continue
        } else if (mayRunAgain(error) && ++conflicts < TRIES) {
          await sleep(Math.random() * 5 * 2 ** conflicts)
          continue
        }
        throw asUnavailable(error) ?? error
      }
    }
  }

  /** A single statement that needs no transaction around it. */
  async read(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#alone((connection) => connection.run(statement, values))
  }

  async now(): Promise<number> {
    if (this.#clock !== undefined) return this.#clock()
    return (await this.read(nowStatement))[0]?.['now'] as number
  }

  async #alone<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    for (let failed = 0; ; failed += 1) {
      const connection = await this.#take()
      try {
        return await work(connection)
      } catch (error) {
        const isOver = isSessionOver(error)
        if (failed >= (isOver ? LOST_CONNECTIONS : TRIES) || !(isOver || mayRunAgain(error)))
          throw asUnavailable(error) ?? error
        if (isOver) connection.destroy()
      } finally {
        this.#connections.giveBack(connection)
      }
    }
  }

  async #take(): Promise<Connection> {
    try {
      return await this.#connections.take()
    } catch (error) {
      throw asUnavailable(error) ?? error
    }
  }

  async #wasCommitted({ session, lastMark }: Connection): Promise<boolean> {
    const until = performance.now() + DOUBT_MILLIS
    while (true) {
      try {
        const [row] = await this.#alone((connection) => connection.run(readMark, [session]))
        return row !== undefined && (row['number'] as number) >= lastMark
      } catch (error) {
        if (performance.now() >= until) {
          throw new StoreUnavailable(
            'store_unavailable',
            'the connection to PostgreSQL was lost during a commit and PostgreSQL is still away',
            { cause: error },
          )
        }
        await sleep(100)
      }
    }
  }
}

class Attempt implements Transaction {
  readonly #connection: Connection
  readonly #kind: NonNullable<TransactionOptions['kind']>
  readonly #clock: Clock | undefined
  #now: Promise<number> | undefined
  #wrote = false
  #isMarked = false
  #knownNow: number | null = null
  readonly #posted: Promise<unknown>[] = []
  /** What the transaction comes to, once COMMIT has been sent. */
  committing: unknown

  constructor(
    connection: Connection,
    kind: NonNullable<TransactionOptions['kind']>,
    clock: Clock | undefined,
  ) {
    this.#connection = connection
    this.#kind = kind
    this.#clock = clock
  }

  async make<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    const begun = this.#connection.exec(this.#begin())
    begun.catch(() => {})
    const result = await work(this)
    await begun
    if (this.#kind === 'durable' && this.#wrote) await this.#commitMarked(result)
    else await Promise.all([...this.#posted, this.#commit()])
    return result
  }

  run(statement: Statement, values?: readonly unknown[]): Promise<Row[]> {
    return this.#connection.run(statement, values)
  }

  write(statement: Statement, values?: readonly unknown[]): Promise<Row[]> {
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

  async rollBack(): Promise<void> {
    try {
      await this.#connection.exec('ROLLBACK')
    } catch {
      this.#connection.destroy()
    }
  }

  #begin(): string {
    const { begin } = this.#connection
    if (this.#kind === 'reading')
      return begin.replace('BEGIN', 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    return this.#kind === 'relaxed' ? `${begin}; SET LOCAL synchronous_commit = off` : begin
  }

  async #commitMarked(result: unknown): Promise<void> {
    this.committing = result
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
