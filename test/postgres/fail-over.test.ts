import { setTimeout as sleep } from 'node:timers/promises'
import { auditPostgres } from '../chaos/support/audit.ts'
import { OUTAGE } from '../chaos/support/database-disturbances.ts'
import { type Fleet, settings } from '../chaos/support/fleet.ts'
import { describeGuarantees } from '../chaos/support/guarantees.ts'
import { NodeProcess } from './support/node-process.ts'
import { PostgresServer } from './support/postgres-server.ts'

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

async function startReplicatedFleet(leaseMillis: number): Promise<Fleet> {
  const pair = await ReplicatedPair.start()
  const flags = [...settings(leaseMillis), '--database-url', pair.url]
  const nodes = await Promise.all(['north', 'east'].map((name) => NodeProcess.start(name, flags)))
  const kill = () => Promise.all(nodes.map((node) => node.kill()))
  return {
    nodes,
    disturbances: [{ name: 'fail-over', explains: OUTAGE, happen: () => pair.failOver() }],
    audit: async () => {
      await kill()
      return auditPostgres(pair.url)
    },
    dispose: async () => {
      await kill()
      await pair.dispose()
    },
  }
}

describeGuarantees([
  { name: 'two nodes whose primary dies, and whose standby takes over', startFleet: startReplicatedFleet },
])
