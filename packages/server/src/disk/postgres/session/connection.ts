import { createHash } from 'node:crypto'
import type { Socket } from 'node:net'
import pg from 'pg'
import { ConnectionLost, isConsequence, isRefusedName, sqlState } from './errors.ts'

const APPLICATION = 'baton'

const INT8 = 20

/** Counts and times are safe integers. A statement that reads larger values casts them to text. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
}

export interface Statement {
  readonly text: string
  readonly values?: readonly unknown[]
  /** If it runs alone, PostgreSQL may parse and plan it once per session and keep it under this name. */
  readonly name?: string
}

/** The name depends on the text: behind a pooler, another version may have prepared one on the session. */
export const prepared = (text: string): { readonly text: string; readonly name: string } => ({
  text,
  name: `baton_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`,
})

export type Row = Record<string, unknown>

export interface ConnectionOptions {
  readonly connectMillis: number
  /** A connection that has not answered for this long is destroyed. */
  readonly answerMillis: number
}

/**
 * One connection. It may lead to a pooler that assigns another session to each transaction, so nothing may
 * depend on the state of the session: no settings, no locks, and named statements only while they are found.
 * Statements are pipelined and a transaction is sent in one piece, so several callers may share a connection.
 */
export class Connection {
  readonly #client: pg.Client
  #isLost = false
  #warnings = 0
  #usesPreparedStatements = true

  private constructor(client: pg.Client) {
    this.#client = client
    client.on('error', () => this.#lose())
    client.on('end', () => this.#lose())
    client.on('notice', ({ code }) => {
      // 57P01: the session ended during the wait for a standby. Plain notices are in class 00.
      if (code?.startsWith('01') === true || code?.startsWith('57') === true) this.#warnings += 1
    })
  }

  static async open(url: string, { connectMillis, answerMillis }: ConnectionOptions): Promise<Connection> {
    const client = new pg.Client({
      connectionString: url,
      application_name: APPLICATION,
      connectionTimeoutMillis: connectMillis,
      query_timeout: answerMillis,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      pipeline: true,
      types,
    })
    const connection = new Connection(client)
    try {
      await client.connect()
      return connection
    } catch (error) {
      connection.destroy()
      throw error
    }
  }

  get isLost(): boolean {
    return this.#isLost
  }

  get warnings(): number {
    return this.#warnings
  }

  /** Runs one statement in its own transaction. */
  async run(statement: Statement): Promise<Row[]> {
    if (statement.name !== undefined && this.#usesPreparedStatements) {
      try {
        return (await this.#send(statement, statement.name)).rows as Row[]
      } catch (error) {
        if (!isRefusedName(error)) throw error
        this.#usesPreparedStatements = false
      }
    }
    return (await this.#send(statement)).rows as Row[]
  }

  /** Sends a transaction in one piece, so that the server never waits for the client within it. */
  async transact(begin: string, statements: readonly Statement[]): Promise<Row[][]> {
    const stream = this.#stream
    stream.cork()
    const answers = [{ text: begin }, ...statements, { text: 'COMMIT' }].map((one) => this.#send(one))
    stream.uncork()
    const settled = await Promise.allSettled(answers)
    const failures = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
    if (failures.length > 0) throw failures.find((failure) => !isConsequence(failure)) ?? failures[0]
    const results = settled.map((one) => (one as PromiseFulfilledResult<pg.QueryResult>).value)
    // PostgreSQL replies to the COMMIT of a failed transaction with ROLLBACK, not with an error.
    if (results.at(-1)?.command !== 'COMMIT') throw new Error('the transaction had failed before its COMMIT')
    return results.slice(1, -1).map(({ rows }) => rows as Row[])
  }

  async close(): Promise<void> {
    if (!this.#isLost) await this.#client.end().catch(() => {})
  }

  destroy(): void {
    this.#lose()
    this.#stream.destroy()
  }

  /** Socket errors come in many shapes. Callers get a ConnectionLost for all of them. */
  async #send({ text, values }: Statement, name?: string): Promise<pg.QueryResult> {
    try {
      return await this.#client.query({ text, values, name } as pg.QueryConfig)
    } catch (error) {
      if (sqlState(error) !== undefined) throw error
      this.destroy()
      throw new ConnectionLost('the connection to PostgreSQL was lost', { cause: error })
    }
  }

  get #stream(): Socket {
    return (this.#client as unknown as { connection: { stream: Socket } }).connection.stream
  }

  #lose(): void {
    this.#isLost = true
  }
}

/**
 * The settings of each transaction, whatever is set for the server, the database or the role. All statements
 * look rows up by index; with the other plans switched off, stale statistics cannot make the planner scan a
 * table of a million partitions. JIT compilation would take longer than the statements.
 */
const SETTINGS = {
  // When off, a NULL in an array parameter is read as the text "NULL".
  array_nulls: 'on',
  // Only PostgreSQL's own functions and operators, even if others with the same name match better.
  search_path: 'pg_catalog',
  lock_timeout: '10s',
  statement_timeout: '30s',
  // A node that is disconnected in the middle of a transaction loses its locks.
  idle_in_transaction_session_timeout: '5s',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_material: 'off',
  jit: 'off',
}

const set = (settings: Record<string, string>): string =>
  Object.entries(settings)
    .map(([name, value]) => `SET LOCAL ${name} = '${value}'`)
    .join('; ')

/** Reads one consistent snapshot. */
export const BEGIN_READING = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${set(SETTINGS)}`

/** A statement that waited for a row lock continues with the updated row. */
export const BEGIN_WRITING = `BEGIN ISOLATION LEVEL READ COMMITTED; ${set(SETTINGS)}`
