import { setTimeout as sleep } from 'node:timers/promises'
import { StoreUnavailable } from '../../../handoff/store.ts'
import { PRESENCE_LOCKS } from './advisory-locks.ts'
import type { Connection } from './connection.ts'
import { isNotAllowed } from './failures.ts'
import { NOW, statement } from './statement.ts'

/**
 * Who changes partitions by transactions shares this lock, with each of its connections. Who hands out from memory has
 * it alone, and so knows that nobody else does either.
 */
const LOCK = `${PRESENCE_LOCKS}, 0`
const HELD_ALONE = `locktype = 'advisory' AND classid = ${PRESENCE_LOCKS} AND objid = 0 AND objsubid = 2 AND granted
   AND mode = 'ExclusiveLock' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

/** In SQL: whether there may be nodes whose sessions are lent to them by transaction, so that none keeps a lock. */
const ARE_POOLED = `EXISTS (SELECT FROM baton.pooled WHERE until > ${NOW})`

/** In SQL: what a transaction begins with on a session that is lent for it alone. */
export const ENTER_FOR_TRANSACTION = `SELECT pg_advisory_xact_lock_shared(${LOCK})`

const enter = statement('enter', `SELECT pg_try_advisory_lock_shared(${LOCK}) AS locked`)
const enterLent = statement('enter-lent', `SELECT pg_try_advisory_xact_lock_shared(${LOCK}) AS locked`)
const leave = statement('leave', `SELECT pg_advisory_unlock_shared(${LOCK})`)
const accompanied = statement(
  'accompanied',
  `SELECT EXISTS (
     SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = $2 AND pid <> ALL ($1::int[])
   ) OR ${ARE_POOLED} AS others`,
)
const goAlone = statement(
  'go-alone',
  `SELECT pg_try_advisory_lock(${LOCK}) AS locked, nextval('baton.note_run') AS run`,
)
const comeBack = statement('come-back', `SELECT pg_advisory_unlock(${LOCK})`)
const standing = statement(
  'standing-after-lock',
  `SELECT EXISTS (SELECT FROM baton.note) AS notes, ${ARE_POOLED} AS pooled`,
)
const holder = statement('who-is-alone', `SELECT pid FROM pg_locks WHERE ${HELD_ALONE}`)
const end = statement(
  'end-alone',
  `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE pid = $1 AND ${HELD_ALONE}`,
)

/** On this channel a node that is alone is asked to make room. */
export const MAKE_ROOM = 'baton_make_room'
const ask = statement('ask-for-room', `SELECT pg_notify('${MAKE_ROOM}', '')`)

const LOOK_MILLIS = 5
const ASK_EVERY_MILLIS = 500
/** A node that has not made room after so long hangs or is cut off: its session is ended. What it noted is not lost. */
const PATIENCE_MILLIS = 3000
const GIVE_UP_MILLIS = 10_000

/** The part of one node in that lock. */
export class Presence {
  /** Sessions of ours that were alone and got lost: where they still have the lock nobody need be asked. */
  readonly #lost = new Set<number>()

  lose({ processId }: Connection): void {
    this.#lost.add(processId)
  }

  /**
   * Takes the lock on a connection, together with others. Resolves with whether somebody left notes behind, which have to
   * be written up before anything else.
   */
  async enter(connection: Connection): Promise<{ readonly notesLeft: boolean }> {
    const began = performance.now()
    let asked = Number.NEGATIVE_INFINITY
    while (true) {
      const [row] = await connection.run(connection.isOwn ? enter : enterLent)
      if (row?.['locked'] === true) {
        connection.isPresent = connection.isOwn
        return standingOf(connection)
      }
      const waited = performance.now() - began
      if (waited > GIVE_UP_MILLIS)
        throw new StoreUnavailable(
          'store_unavailable',
          'another node works alone, does not make room, and its session cannot be ended by this user',
        )
      const [found] = await connection.run(holder)
      const pid = (found?.['pid'] as number | undefined) ?? 0
      if (this.#lost.delete(pid) || waited > PATIENCE_MILLIS) await this.#endSession(connection, pid)
      else if (waited - asked > ASK_EVERY_MILLIS) {
        asked = waited
        await connection.run(ask)
      }
      await sleep(LOOK_MILLIS)
    }
  }

  /** One of another role can be ended by members of pg_signal_backend only; perhaps it makes room after all. */
  async #endSession(connection: Connection, pid: number): Promise<void> {
    try {
      await connection.run(end, [pid])
    } catch (error) {
      if (!isNotAllowed(error)) throw error
    }
  }

  /**
   * Whether sessions of other nodes are there, beside those of this one. Not by the lock: a node of an earlier version has
   * none, and would not make itself heard later either.
   */
  async isAccompanied(connection: Connection, own: readonly number[], application: string): Promise<boolean> {
    const [row] = await connection.run(accompanied, [[connection.processId, ...own], application])
    return row?.['others'] === true
  }

  async leave(connection: Connection): Promise<void> {
    await connection.run(leave)
    connection.isPresent = false
  }

  /** Resolves with the number that the notes of this time begin after; undefined when others are there. */
  async tryAlone(connection: Connection): Promise<number | undefined> {
    const [row] = await connection.run(goAlone)
    if (row?.['locked'] !== true) return undefined
    const { notesLeft, arePooled } = await standingOf(connection)
    if (!notesLeft && !arePooled) return row['run'] as number
    await this.comeBack(connection)
    return undefined
  }

  async comeBack(connection: Connection): Promise<void> {
    await connection.run(comeBack)
  }
}

/** Asked for after the lock was taken: whoever had it may have noted something until then. */
async function standingOf(connection: Connection): Promise<{ notesLeft: boolean; arePooled: boolean }> {
  const [row] = await connection.run(standing)
  return { notesLeft: row?.['notes'] === true, arePooled: row?.['pooled'] === true }
}
