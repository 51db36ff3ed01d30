import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../handoff/clock.ts'
import { StoreUnavailable } from '../../handoff/store.ts'
import { Attempt } from './attempt.ts'
import type { Connection, Row } from './connection.ts'
import type { Connections } from './connections.ts'
import { asUnavailable, isSessionOver, mayRunAgain } from './failures.ts'
import { type Statement, statement } from './statement.ts'
import { nowStatement, type Transaction, type TransactionOptions } from './transaction.ts'

/** Locks the mark, and so waits for a commit that is under way. */
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
