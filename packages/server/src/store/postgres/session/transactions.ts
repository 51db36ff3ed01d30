import { setTimeout as sleep } from 'node:timers/promises'
import type { WallClock } from '../../../handoff/clock.ts'
import { Attempt } from './attempt.ts'
import type { Connection } from './connection.ts'
import type { Connections } from './connections.ts'
import { Doubt } from './doubt.ts'
import { asUnavailable, isSessionOver, isTaken, mayRunAgain } from './failures.ts'
import type { Row, Statement } from './statement.ts'
import { nowStatement, type Transaction, type TransactionOptions } from './transaction.ts'

/** Conflicts with other transactions; each try begins anew. */
const TRIES = 6
/** Connections that turn out to be dead one after another: after a restart every idle one is. */
const LOST_CONNECTIONS = 12

export class Transactions {
  readonly #connections: Connections
  readonly #clock: WallClock | undefined
  readonly #mustEnter: boolean
  readonly #doubt = new Doubt((statement, values) => this.runOne(statement, values))

  /**
   * `mustEnter` is for work that reads or changes the rows of partitions: it must not run while another node hands out
   * from memory; see alone/.
   */
  constructor(connections: Connections, clock: WallClock | undefined, mustEnter: boolean) {
    this.#connections = connections
    this.#clock = clock
    this.#mustEnter = mustEnter
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
            return attempt.committing.result as Result
          lost += 1
          if (lost < LOST_CONNECTIONS) continue
        } else {
          await attempt.rollBack()
          this.#connections.giveBack(connection)
          if (mayRunAgain(error) && ++conflicts < TRIES) {
            if (!connection.isOwn) this.#connections.enterAnew()
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
   * One statement that is a whole durable transaction, in one round trip. Its last parameter, after `values`, is the lock
   * of the connection, which it has to take before it writes. Undefined when the answer got lost: then it is over, and
   * the caller has to find out whether it was committed. A mark would tell, for one more row written by every batch.
   */
  async runAlone(statement: Statement, values: readonly unknown[]): Promise<Row[] | undefined> {
    for (let conflicts = 0; ; conflicts += 1) {
      // Without a turn of the event loop: the server works while the last answers are written.
      const connection = this.#connections.takeEntered() ?? (await this.#take())
      try {
        const rows = await connection.runAlone(statement, [...values, connection.lock])
        this.#connections.giveBack(connection)
        return rows
      } catch (error) {
        const isOver = isSessionOver(error)
        if (isOver) connection.destroy()
        this.#connections.giveBack(connection)
        if (isOver) {
          await this.#doubt.lastMark(connection)
          return undefined
        }
        if (!(mayRunAgain(error) || isTaken(error)) || conflicts + 1 >= TRIES)
          throw asUnavailable(error) ?? error
        await sleep(Math.random() * 5 * 2 ** (conflicts + 1))
      }
    }
  }

  /** Nobody is alone when it resolves, and nothing that was noted is left. Asks nothing where that is known. */
  async enter(): Promise<void> {
    const connection = this.#connections.takeEntered() ?? (await this.#take())
    this.#connections.giveBack(connection)
  }

  /** After a commit whose answer got lost: waits for a while until there is somebody who can be asked. */
  async untilBack(): Promise<void> {
    await this.#doubt.ask(nowStatement, [])
  }

  /** A single statement that needs no transaction around it, and does no harm when it is run twice: an answer may get lost. */
  async runOne<Found>(statement: Statement<Found>, values: readonly unknown[] = []): Promise<Found[]> {
    for (let failed = 0; ; failed += 1) {
      const connection = await this.#take()
      try {
        return await connection.run(statement, values)
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

  async now(): Promise<number> {
    if (this.#clock !== undefined) return this.#clock()
    return (await this.runOne(nowStatement))[0]?.['now'] as number
  }

  async #take(): Promise<Connection> {
    for (let lost = 0; ; lost += 1) {
      try {
        return await (this.#mustEnter ? this.#connections.takeToEnter() : this.#connections.take())
      } catch (error) {
        // One that rested may turn out to be dead when it enters.
        if (this.#mustEnter && isSessionOver(error) && lost < LOST_CONNECTIONS) continue
        throw asUnavailable(error) ?? error
      }
    }
  }

  async #wasCommitted(lost: Connection): Promise<boolean> {
    return ((await this.#doubt.lastMark(lost)) ?? 0) >= lost.lastMark
  }
}
