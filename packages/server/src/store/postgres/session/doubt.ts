import { setTimeout as sleep } from 'node:timers/promises'
import { StoreUnavailable } from '../../../handoff/store.ts'
import type { Connection } from './connection.ts'
import { type Row, type Statement, statement } from './statement.ts'

type Read = (statement: Statement, values: readonly unknown[]) => Promise<Row[]>

const isOver = statement('is-session-over', 'SELECT pg_try_advisory_xact_lock($1::bigint) AS over')
const end = statement(
  'end-lost-session',
  `SELECT pg_terminate_backend(pid) FROM pg_locks
   WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND (classid::bigint << 32) | objid::bigint = $1::bigint
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
)
/**
 * Locks the mark, and so waits for a commit that is under way. A session that was ended while it waited for a standby has
 * committed before the standby knew: this is a commit after it, which has to wait for the standby as well.
 */
const readMark = statement('read-mark', 'SELECT number FROM baton.commit_mark WHERE session = $1 FOR UPDATE')

const AWAY_MILLIS = 10_000
const LOOK_MILLIS = 5
/**
 * A session ends by itself when it has done what it was sent and learns that nobody is there. One that waits for a lock is
 * not there yet, and one that is half-open never hears of it: it is ended. Whichever way that goes, the mark tells.
 */
const PATIENCE_MILLIS = 500
const END_EVERY_MILLIS = 500

/**
 * What became of a commit whose answer got lost. The server may have all of a transaction in its socket and not have come
 * to it yet, so what is stored says nothing until the session that was lost can do nothing more.
 */
export class Doubt {
  readonly #read: Read

  constructor(read: Read) {
    this.#read = read
  }

  /** The last transaction that a lost connection marked, after its end. */
  async lastMark(lost: Connection): Promise<number | undefined> {
    // One that is lent has the mark locked since its transaction began, and the answer to that came before it was to commit.
    if (lost.isOwn) await this.#untilOver(lost.lock)
    const [row] = await this.ask(readMark, [lost.session])
    return row?.['number'] as number | undefined
  }

  /** Asks until there is somebody who answers. */
  async ask(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    const until = performance.now() + AWAY_MILLIS
    while (true) {
      try {
        return await this.#read(statement, values)
      } catch (error) {
        if (performance.now() >= until) throw undecided('PostgreSQL is still away', error)
        await sleep(100)
      }
    }
  }

  async #untilOver(lock: string): Promise<void> {
    const began = performance.now()
    let endAfter = PATIENCE_MILLIS
    while (true) {
      const [row] = await this.ask(isOver, [lock])
      if (row?.['over'] === true) return
      const waited = performance.now() - began
      if (waited > AWAY_MILLIS) throw undecided('its session cannot be ended', undefined)
      if (waited > endAfter) {
        endAfter = waited + END_EVERY_MILLIS
        // Whether it was of use, the next look tells.
        await this.#read(end, [lock]).catch(() => {})
      }
      await sleep(LOOK_MILLIS)
    }
  }
}

const undecided = (why: string, cause: unknown) =>
  new StoreUnavailable(
    'store_unavailable',
    `the connection to PostgreSQL was lost during a commit and ${why}`,
    { cause },
  )
