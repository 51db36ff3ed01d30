import { setTimeout as sleep } from 'node:timers/promises'
import { FaultyLink } from './faulty-link.ts'
import { PostgresServer } from './postgres-server.ts'

const settings = { wal_level: 'replica', wal_keep_size: '512MB' }

/** A primary and an asynchronous standby, which may lack the last commits after a fail-over. */
export class LaggingPair {
  readonly database: string
  #primary: PostgresServer
  #standby: PostgresServer
  /** The link by which the standby follows the primary. */
  readonly #replication: FaultyLink

  private constructor(
    database: string,
    primary: PostgresServer,
    standby: PostgresServer,
    replication: FaultyLink,
  ) {
    this.database = database
    this.#primary = primary
    this.#standby = standby
    this.#replication = replication
  }

  static async start(): Promise<LaggingPair> {
    const primary = await PostgresServer.start({ settings })
    const { name } = await primary.createDatabase()
    const replication = await FaultyLink.start(primary.port)
    const standby = await PostgresServer.start({
      ...{ copyOf: primary, replicatesFrom: replication.port, settings },
    })
    return new LaggingPair(name, primary, standby, replication)
  }

  get primary(): PostgresServer {
    return this.#primary
  }

  /**
   * The standby stops following, the primary continues until `tail` resolves and is then stopped permanently,
   * and the standby takes over. Returns the period whose commits may be lost: the standby has everything that
   * was answered before it.
   */
  async failOver(tail: () => Promise<void>): Promise<{ from: number; until: number }> {
    const from = Date.now()
    await this.#untilFollowed()
    const reset = this.#replication.swallow()
    await tail()
    await this.#primary.crash()
    const until = Date.now()
    reset()
    await this.#standby.query('SELECT pg_promote(true)')
    await this.#primary.dispose()
    this.#primary = this.#standby
    return { from, until }
  }

  /** Creates a new standby for the next fail-over. */
  async renewStandby(): Promise<void> {
    this.#replication.upstream = this.#primary.port
    this.#standby = await PostgresServer.start({
      ...{ copyOf: this.#primary, replicatesFrom: this.#replication.port, settings },
    })
  }

  async dispose(): Promise<void> {
    await this.#standby.dispose()
    if (this.#primary !== this.#standby) await this.#primary.dispose()
    await this.#replication.stop()
  }

  async #untilFollowed(): Promise<void> {
    const [at] = await this.#primary.query('SELECT pg_current_wal_lsn()::text AS lsn')
    while (true) {
      const [row] = await this.#standby.query(
        `SELECT pg_last_wal_receive_lsn() >= '${at?.['lsn']}' AS is_there`,
      )
      if (row?.['is_there'] === true) return
      await sleep(20)
    }
  }
}
