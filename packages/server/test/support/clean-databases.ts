import pg from 'pg'
import type { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { openPostgresDisk } from '../../src/disk/postgres/postgres-disk.ts'

export interface CleanDatabase {
  readonly url: string
  /** For the next test. Whoever used it has closed it by now. */
  giveBack(): void
}

const TEMPLATE = 'template_of_disks'

/**
 * Databases that hold the schema and nothing else. To empty one that a test has used takes a tenth of the time that a new
 * one takes, so they are used again.
 */
export class CleanDatabases {
  readonly #server: PostgresServer
  readonly #used: Used[] = []

  private constructor(server: PostgresServer) {
    this.#server = server
  }

  static async on(server: PostgresServer): Promise<CleanDatabases> {
    await server.query(`CREATE DATABASE ${TEMPLATE}`)
    const disk = await openPostgresDisk({
      url: server.url(TEMPLATE),
      node: { nodeId: 'template', url: null },
    })
    await disk.close()
    return new CleanDatabases(server)
  }

  /** One that nobody used before, by its name. */
  create(): Promise<{ name: string; url: string }> {
    return this.#server.createDatabase(TEMPLATE)
  }

  async take(): Promise<CleanDatabase> {
    const used = this.#used.pop()
    await used?.empty()
    const taken = used ?? (await Used.prepare((await this.create()).url))
    return { url: taken.url, giveBack: () => this.#used.push(taken) }
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#used.map((database) => database.close()))
  }
}

/** Below it, rows are deleted faster than a table is truncated. */
const MANY_BYTES = 500_000

class Used {
  readonly url: string
  readonly #session: pg.Client

  private constructor(url: string, session: pg.Client) {
    this.url = url
    this.#session = session
  }

  /** Notes what a database holds before its first use: that is what it holds whenever it is clean. */
  static async prepare(url: string): Promise<Used> {
    const session = new pg.Client({ connectionString: url })
    session.on('error', () => {})
    await session.connect()
    const { rows } = await session.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = 'baton'`,
    )
    const statements: string[] = []
    for (const { name } of rows) {
      const held = await session.query(`SELECT json_agg(held) AS rows FROM ${name} AS held`)
      statements.push(
        `IF pg_relation_size('${name}') < ${MANY_BYTES} THEN DELETE FROM ${name}; ELSE TRUNCATE ${name}; END IF`,
      )
      const first = held.rows[0]?.rows
      if (first === null) continue
      const json = session.escapeLiteral(JSON.stringify(first))
      statements.push(`INSERT INTO ${name} SELECT * FROM json_populate_recordset(NULL::${name}, ${json})`)
    }
    // A function, because a session keeps the plans of its statements.
    await session.query(
      `CREATE FUNCTION pg_temp.empty() RETURNS void LANGUAGE plpgsql AS $$BEGIN ${statements.join('; ')}; END$$`,
    )
    return new Used(url, session)
  }

  async empty(): Promise<void> {
    await this.#session.query('SELECT pg_temp.empty()')
  }

  async close(): Promise<void> {
    await this.#session.end()
  }
}
