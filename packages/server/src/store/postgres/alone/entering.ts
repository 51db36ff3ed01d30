import { setTimeout as sleep } from 'node:timers/promises'
import type { WallClock } from '../../../handoff/clock.ts'
import type { Policy } from '../../../handoff/rules/policy.ts'
import { Attempt } from '../session/attempt.ts'
import type { Connection } from '../session/connection.ts'
import { mayRunAgain } from '../session/failures.ts'
import type { Presence } from '../session/presence.ts'
import { NOW, statement } from '../session/statement.ts'
import type { Transaction } from '../session/transaction.ts'
import { fillCounted } from '../windows/filling.ts'
import { writeUpLeft } from './write-up.ts'

/** Whoever was writing the notes up has them locked until its session ends, after 5 seconds at most. */
const TRIES = 3
const PAUSE_MILLIS = 100

/**
 * A session that a pooler lends by transaction keeps no lock. It locks with each transaction, and would wait for a node that is
 * alone each time; so it says that it is about, and then nobody goes alone for so long.
 */
const ABOUT_MILLIS = 7_200_000
const sayAbout = statement(
  'say-about',
  `WITH over AS (DELETE FROM baton.pooled WHERE until < ${NOW} + ${ABOUT_MILLIS})
   INSERT INTO baton.pooled VALUES (${NOW} + ${ABOUT_MILLIS})`,
)

/** What a connection goes through before partitions are changed with it. */
export class Entering {
  readonly #presence: Presence
  readonly #policy: Policy
  readonly #clock: WallClock | undefined

  constructor(presence: Presence, policy: Policy, clock: WallClock | undefined) {
    this.#presence = presence
    this.#policy = policy
    this.#clock = clock
  }

  /** Nobody is alone when it resolves, and what a node left behind that was is written up. */
  async enter(connection: Connection): Promise<void> {
    // In this order: whoever goes alone after the lock was free has been told before.
    if (!connection.isOwn) await connection.run(sayAbout)
    const { notesLeft } = await this.#presence.enter(connection)
    if (!notesLeft) return
    const { tripped } = await this.#try(connection, (tx) => writeUpLeft(tx, this.#policy))
    // Their tripwires were handed out by a node that did not come to fill the windows.
    for (const lane of tripped) await this.#try(connection, (tx) => fillCounted(tx, lane))
  }

  async #try<Result>(connection: Connection, work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries += 1) {
      const attempt = new Attempt(connection, 'durable', this.#clock)
      try {
        return await attempt.make(work)
      } catch (error) {
        if (!mayRunAgain(error) || tries === TRIES) throw error
        await attempt.rollBack()
        await sleep(PAUSE_MILLIS)
      }
    }
  }
}
