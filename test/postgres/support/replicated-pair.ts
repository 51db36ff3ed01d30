import { setTimeout as sleep } from 'node:timers/promises'
import { PostgresServer } from './postgres-server.ts'

/** A primary and a standby that every commit waits for. */
export class ReplicatedPair {
  readonly primary: PostgresServer
  readonly standby: PostgresServer
  readonly database: string

  private constructor(primary: PostgresServer, standby: PostgresServer, database: string) {
    this.primary = primary
    this.standby = standby
    this.database = database
  }

  static async start(): Promise<ReplicatedPair> {
    const primary = await PostgresServer.start({ settings: { wal_level: 'replica', wal_keep_size: '256MB' } })
    const { name } = await primary.createDatabase()
    await primary.stop()
    // The copy takes the primary's port from it, so the order of the two starts does not matter.
    const standby = await PostgresServer.start({ copyOf: primary })
    await primary.start()
    await primary.query(`ALTER SYSTEM SET synchronous_standby_names = 'standby'`)
    await primary.query('SELECT pg_reload_conf()')
    const pair = new ReplicatedPair(primary, standby, name)
    await pair.#untilSynchronous()
    return pair
  }

  /** Both hosts in one URL, as libpq writes it. */
  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.primary.port},127.0.0.1:${this.standby.port}/${this.database}`
  }

  /** The primary is gone for good, and the standby takes over. */
  async failOver(): Promise<void> {
    await this.primary.crash()
    await this.standby.query('SELECT pg_promote(true)')
  }

  async dispose(): Promise<void> {
    await this.standby.dispose()
    await this.primary.dispose()
  }

  async #untilSynchronous(): Promise<void> {
    while (true) {
      const [row] = await this.primary.query('SELECT sync_state FROM pg_stat_replication')
      if (row?.['sync_state'] === 'sync') return
      await sleep(50)
    }
  }
}
