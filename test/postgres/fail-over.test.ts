import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'vitest'
import { PostgresServer } from './support/postgres-server.ts'
import { expectAllDone, loadOn, startNode } from './support/scene.ts'

const LEASE_MILLIS = 2000

/** A primary and a standby that every commit waits for. */
class ReplicatedPair {
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
    // The standby takes the port from `primary`, so the order of the two starts does not matter.
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

  /** Kills the primary permanently and promotes the standby. */
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

test('when the primary dies and the standby takes over, nothing that was acknowledged is missing', async () => {
  const pair = await ReplicatedPair.start()
  const nodes = await Promise.all(['north', 'east'].map((name) => startNode(name, pair.url, LEASE_MILLIS)))
  try {
    const urls = nodes.map((node) => node.url)
    const load = loadOn({ urls, leaseMillis: LEASE_MILLIS, arrays: 30, workers: 8 })
    const loading = load.run()
    loading.catch(() => {})
    await load.reached(0.4)
    await pair.failOver()
    await loading
    await expectAllDone(load, pair.url)
  } finally {
    await Promise.all(nodes.map((node) => node.kill()))
    await pair.dispose()
  }
})
