import { StoreUnavailable } from '../../../handoff/store.ts'
import type { Connection } from './connection.ts'
import type { Connector } from './connector.ts'
import { NOW, statement } from './statement.ts'

const introduce = statement(
  'introduce-connection',
  `INSERT INTO baton.commit_mark (session, number, marked_at)
   VALUES ($1, 0, ${NOW})`,
)
/** With the lock that tells whether the session is still there: it is let go by the end of the session alone. */
const introduceOwn = statement(
  'introduce-own-connection',
  `INSERT INTO baton.commit_mark (session, number, marked_at)
   SELECT $1::uuid, 0, ${NOW} FROM pg_advisory_lock($2::bigint)`,
)
const takeLeave = statement('take-leave', 'DELETE FROM baton.commit_mark WHERE session = $1')

/** Marks that were not touched for a day are forgotten; no connection may rest for so long and then be used. */
const IDLE_MILLIS = 1_800_000
/** Much less than entering with a session that is lent holds for; see alone/entering.ts. */
const LENT_MILLIS = 1_800_000

/** Makes sure that nobody hands out from memory, and that what was noted is in the rows; see alone/entering.ts. */
interface Entering {
  enter(connection: Connection): Promise<void>
}

interface Waiting {
  readonly give: (connection: Connection) => void
  readonly fail: (error: unknown) => void
  readonly timer: NodeJS.Timeout
}

/**
 * A handful of connections, opened when they are needed and shared by turns. Who is to change partitions needs one that
 * has entered, see session/presence.ts.
 */
export class Connections {
  readonly #connector: Connector
  readonly #entering: Entering
  readonly #most: number
  readonly #waitMillis: number
  readonly #idle: { readonly connection: Connection; readonly since: number }[] = []
  readonly #waiting: Waiting[] = []
  readonly #all = new Set<Connection>()
  #open = 0
  /** Sessions that are lent keep no lock: entering with one of them holds for all, for a while. */
  #lentUntil = 0
  #closed = false
  #changed: () => void = () => {}

  constructor(connector: Connector, most: number, waitMillis: number, entering: Entering) {
    this.#connector = connector
    this.#most = most
    this.#waitMillis = waitMillis
    this.#entering = entering
  }

  /**
   * Told when one was lost, and when one was opened, before it is used. The database may have been away, and have come back
   * without its last commits.
   */
  onChange(listener: () => void): void {
    this.#changed = listener
  }

  /** One that is open and rests and has entered, at once. */
  takeEntered(): Connection | undefined {
    const connection = this.#takeIdle()
    if (connection === undefined || connection.isPresent) return connection
    this.giveBack(connection)
    return undefined
  }

  async takeToEnter(): Promise<Connection> {
    const connection = await this.take()
    if (connection.isOwn ? connection.isPresent : performance.now() < this.#lentUntil) return connection
    try {
      await this.#entering.enter(connection)
      this.#lentUntil = performance.now() + LENT_MILLIS
      return connection
    } catch (error) {
      // It may have the lock and not have written up what was left behind.
      connection.destroy()
      this.giveBack(connection)
      throw error
    }
  }

  /** For sessions that are lent: whoever was told that they are about may have forgotten. */
  enterAnew(): void {
    this.#lentUntil = 0
  }

  /** All that rest and have entered, for a moment: nobody else is given one of them meanwhile. */
  async withEntered(work: (connection: Connection) => Promise<void>): Promise<void> {
    const entered = this.#idle
      .filter(({ connection }) => connection.isPresent)
      .map(({ connection }) => connection)
    const rest = this.#idle.filter(({ connection }) => !connection.isPresent)
    this.#idle.splice(0, this.#idle.length, ...rest)
    await Promise.allSettled(
      entered.map(async (connection) => {
        await work(connection).catch(() => connection.destroy())
        this.giveBack(connection)
      }),
    )
  }

  /** Of the server's processes behind them. */
  get processIds(): number[] {
    return [...this.#all].map(({ processId }) => processId)
  }

  #takeIdle(): Connection | undefined {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      const { connection, since } = idle
      const isStale = performance.now() - since > IDLE_MILLIS
      if (!connection.isLost && !isStale) return connection
      this.#open -= 1
      if (!connection.isLost) void this.#leave(connection)
    }
    return undefined
  }

  async take(): Promise<Connection> {
    if (this.#closed) throw new StoreUnavailable('store_unavailable', 'the store is closed')
    const idle = this.#takeIdle()
    if (idle !== undefined) return idle
    if (this.#open >= this.#most) return this.#wait()
    this.#open += 1
    try {
      return await this.#introduced(await this.#connector.connect())
    } catch (error) {
      this.#open -= 1
      this.#failNext(error)
      throw error
    }
  }

  async #introduced(connection: Connection): Promise<Connection> {
    try {
      const { session, lock, isOwn } = connection
      await (isOwn ? connection.run(introduceOwn, [session, lock]) : connection.run(introduce, [session]))
    } catch (error) {
      // Nobody else knows of it, and the server has only so many.
      connection.destroy()
      throw error
    }
    this.#all.add(connection)
    connection.onLost(() => {
      this.#all.delete(connection)
      this.#changed()
    })
    this.#changed()
    return connection
  }

  giveBack(connection: Connection): void {
    if (connection.isLost || this.#closed) {
      this.#open -= 1
      if (!connection.isLost) void this.#leave(connection)
      this.#replace()
      return
    }
    const next = this.#waiting.shift()
    if (next === undefined) this.#idle.push({ connection, since: performance.now() })
    else {
      clearTimeout(next.timer)
      next.give(connection)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const { fail, timer } of this.#waiting.splice(0)) {
      clearTimeout(timer)
      fail(new StoreUnavailable('store_unavailable', 'the store is closed'))
    }
    await Promise.all(this.#idle.splice(0).map(({ connection }) => this.#leave(connection)))
  }

  async #leave(connection: Connection): Promise<void> {
    await connection.run(takeLeave, [connection.session]).catch(() => {})
    await connection.close()
  }

  #wait(): Promise<Connection> {
    return new Promise((give, fail) => {
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
        fail(new StoreUnavailable('store_unavailable', 'all connections to PostgreSQL are busy'))
      }, this.#waitMillis)
      const waiting = { give, fail, timer }
      this.#waiting.push(waiting)
    })
  }

  /** A connection went: whoever waits for one gets a new one. */
  #replace(): void {
    const next = this.#waiting.shift()
    if (next === undefined) return
    clearTimeout(next.timer)
    this.take().then(next.give, next.fail)
  }

  /** Nobody is left waiting for a connection that could not be opened. */
  #failNext(error: unknown): void {
    if (this.#open > 0) return
    for (const { fail, timer } of this.#waiting.splice(0)) {
      clearTimeout(timer)
      fail(error)
    }
  }
}
