import pg from 'pg'
import type { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { openPostgresDisk } from '../../src/disk/postgres/postgres-disk.ts'

export interface CleanDatabase {
  readonly url: string
  /** Returns it for the next test. All its connections are closed by now. */
  giveBack(): void
}

const TEMPLATE = 'template_of_disks'

/**
 * Databases that contain only the schema. Emptying a used one is much faster than creating a new one, so they
 * are reused.
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
      node: { nodeId: 'template', url: '' },
    })
    await disk.close()
    return new CleanDatabases(server)
  }

  /** Creates a new database and returns its name. */
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

/** Below this number, deleting rows is faster than truncating a table. */
const MANY_BYTES = 500_000

class Used {
  readonly url: string
  readonly #session: pg.Client

  private constructor(url: string, session: pg.Client) {
    this.url = url
    this.#session = session
  }

  /** Records the content of a database before its first use, which is its content whenever it is clean. */
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
    // A function, because a session caches the plans of its statements.
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
