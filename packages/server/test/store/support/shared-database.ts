import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { PostgresServer } from '../../../../../test/postgres/support/postgres-server.ts'
import type { Policy } from '../../../src/handoff/rules/policy.ts'
import { openPostgresStore } from '../../../src/store/postgres/open.ts'
import { PRESENCE_LOCKS } from '../../../src/store/postgres/session/advisory-locks.ts'
import { Driver } from '../conformance/driver.ts'
import { TestClock, testPolicy } from '../conformance/harness.ts'

export interface OpenNodeOptions {
  /** Parameters of the database URL. */
  readonly parameters?: string
  readonly policy?: Partial<Policy>
  /** Where to reach PostgreSQL, if not directly. */
  readonly port?: number
}

export interface Hold {
  letGo(): Promise<void>
}

export interface Backup {
  /** Puts the database back to what it was, and ends all sessions with it. */
  restore(): Promise<void>
}

/** A database that nodes come to and go from, and a look at which of them has it to itself. */
export class SharedDatabase {
  readonly name: string
  readonly #server: PostgresServer
  readonly #url: string
  readonly #clock = new TestClock()
  readonly #closing: (() => Promise<void>)[] = []

  private constructor(server: PostgresServer, name: string, url: string) {
    this.#server = server
    this.name = name
    this.#url = url
  }

  static async create(server: PostgresServer): Promise<SharedDatabase> {
    const { name, url } = await server.createDatabase()
    return new SharedDatabase(server, name, url)
  }

  async open({
    parameters = 'alone=whenever-possible',
    policy,
    port,
  }: OpenNodeOptions = {}): Promise<Driver> {
    const url = this.#url.replace(`:${this.#server.port}/`, `:${port ?? this.#server.port}/`)
    const store = await openPostgresStore({
      url: `${url}?${parameters}`,
      policy: { ...testPolicy, ...policy },
      clock: this.#clock.now,
    })
    this.#closing.push(() => store.close())
    const reopen = () => Promise.reject(new Error('nodes are opened one by one here'))
    return new Driver({ store, reopen, dispose: () => store.close() }, this.#clock)
  }

  async closeAll(): Promise<void> {
    for (const close of this.#closing.splice(0).reverse()) await close()
  }

  query(text: string): Promise<Record<string, unknown>[]> {
    return this.#server.query(text, this.name)
  }

  /** The database as it is now. Nobody may have a session with it. */
  async backUp(): Promise<Backup> {
    const copy = `${this.name}_backup`
    await this.#server.query(`CREATE DATABASE ${copy} TEMPLATE ${this.name}`)
    return {
      restore: async () => {
        await this.#server.query(`DROP DATABASE ${this.name} WITH (FORCE)`)
        await this.#server.query(`ALTER DATABASE ${copy} RENAME TO ${this.name}`)
      },
    }
  }

  /** Whether a node hands out from memory. */
  async isHadAlone(): Promise<boolean> {
    const rows = await this.query(
      `SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = ${PRESENCE_LOCKS} AND mode = 'ExclusiveLock' AND granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    )
    return rows.length > 0
  }

  /** Whether a node has ever tried to. */
  async wasTried(): Promise<boolean> {
    const [row] = await this.query('SELECT is_called FROM baton.note_run')
    return row?.['is_called'] === true
  }

  /** What is noted and not written up. */
  async notes(): Promise<number> {
    return (await this.query('SELECT FROM baton.note')).length
  }

  /**
   * Pulls one by one until the node is alone, and has written up what it noted. It goes alone when nothing else of its own
   * is under way, and that may be counters of what was asked before.
   */
  async goAlone(node: Driver, taskId: string): Promise<string[]> {
    const leases: string[] = []
    while (!(await this.isHadAlone())) {
      leases.push((await node.pullOne()).leaseId)
      await sleep(10)
    }
    await node.task(taskId)
    return leases
  }

  /** Until it is let go, what is noted from now on stays so: whoever writes it up waits for this lock. */
  holdWriteUps(): Promise<Hold> {
    return this.#hold('LOCK TABLE baton.count_delta IN EXCLUSIVE MODE')
  }

  /** The same for the last note that is there, and those that are written up with it. */
  holdLastNote(): Promise<Hold> {
    return this.#hold('SELECT FROM baton.note WHERE number = (SELECT max(number) FROM baton.note) FOR UPDATE')
  }

  /** Pulls with a key wait, whether they are noted or not; nobody else does. */
  holdKeyedPulls(): Promise<Hold> {
    return this.#hold('LOCK TABLE baton.note, baton.pull_key IN EXCLUSIVE MODE')
  }

  /** As a settlement has it that is said again: locked for a moment, and left as it is. */
  holdPartition(level: number, index: number): Promise<Hold> {
    return this.#hold(`SELECT FROM baton.partition WHERE level = ${level} AND idx = ${index} FOR UPDATE`)
  }

  /** Leases that were settled are not taken off the sets that they are due with. */
  holdDue(): Promise<Hold> {
    return this.#hold('SELECT FROM baton.due FOR UPDATE')
  }

  /** Transactions that have written whatever they write wait before their commit. */
  holdCommits(): Promise<Hold> {
    return this.#hold('SELECT FROM baton.commit_mark FOR UPDATE')
  }

  /** As another claim has them: these are passed over. */
  holdPlaces(level: number, indexes: readonly number[]): Promise<Hold> {
    return this.#hold(
      `SELECT FROM baton.ready WHERE id = ANY (ARRAY(
         SELECT id FROM baton.partition WHERE level = ${level} AND idx IN (${indexes.join()}))) FOR UPDATE`,
    )
  }

  /** As the roller does for some milliseconds, and nodes that fill windows. */
  holdLanes(): Promise<Hold> {
    return this.#hold('SELECT FROM baton.lane ORDER BY id FOR NO KEY UPDATE')
  }

  /** Call-backs wait, before they have written anything. */
  holdTasks(): Promise<Hold> {
    return this.#hold('LOCK TABLE baton.task IN EXCLUSIVE MODE')
  }

  /** As a node opens it that knows nothing of all this. */
  async openOldSession(): Promise<void> {
    await this.#connect('baton')
  }

  async #hold(lock: string): Promise<Hold> {
    const holder = await this.#connect('test')
    await holder.query(`BEGIN; ${lock}`)
    return {
      letGo: async () => {
        await holder.query('ROLLBACK')
      },
    }
  }

  async #connect(application: string): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#server.url(this.name),
      application_name: application,
    })
    // The server may end before it.
    client.on('error', () => {})
    await client.connect()
    this.#closing.push(() => client.end())
    return client
  }

  /** The processes of nodes that wait for what others have locked, with statements that contain this. */
  async waiting(text = ''): Promise<number[]> {
    const rows = await this.query(
      `SELECT pid FROM pg_stat_activity
       WHERE datname = '${this.name}' AND application_name = 'baton' AND wait_event_type = 'Lock' AND query LIKE '%${text}%'`,
    )
    return rows.map(({ pid }) => pid as number)
  }

  /** Resolves when so many of them wait. */
  async untilWaiting(sessions: number, text?: string): Promise<void> {
    while ((await this.waiting(text)).length < sessions);
  }

  /** Resolves when all sessions of nodes have ended. */
  async endSessions(): Promise<void> {
    await this.query(
      `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
       WHERE datname = '${this.name}' AND application_name = 'baton'`,
    )
  }
}
