import type { Socket } from 'node:net'
import pg from 'pg'
import { ConnectionLost, isConsequence, sqlState } from './failures.ts'

/** By this name our sessions are told from those of others. */
export const APPLICATION = 'baton'

const INT8 = 20

/** Counts and times fit a number. What does not is cast to text by the statement that reads it. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
}

export interface Statement {
  readonly text: string
  readonly values?: readonly unknown[]
}

export type Row = Record<string, unknown>

export interface ConnectionOptions {
  readonly connectMillis: number
  /** A connection that has not answered for so long is destroyed. */
  readonly answerMillis: number
}

/**
 * One connection. It may lead to a pooler that lends another session to each transaction, so nothing is left on the
 * session: no settings, no named statements, no locks. Statements are sent as they come, without waiting for one another,
 * and a transaction is sent in one piece, so several callers may share a connection.
 */
export class Connection {
  readonly #client: pg.Client
  #isLost = false
  #warnings = 0

  private constructor(client: pg.Client) {
    this.#client = client
    client.on('error', () => this.#lose())
    client.on('end', () => this.#lose())
    client.on('notice', ({ code }) => {
      // 57P01 comes with a wait for a standby that the end of the session cut short. Plain notices have the class 00.
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

  /** How often PostgreSQL has warned on this connection. */
  get warnings(): number {
    return this.#warnings
  }

  /** One statement, a transaction by itself. */
  async run(statement: Statement): Promise<Row[]> {
    return (await this.#send(statement)).rows as Row[]
  }

  /**
   * One transaction in one packet, from BEGIN to COMMIT: the server never waits for us in the middle of it. Resolves with
   * the rows of each statement; rejects with the failure that ended it.
   */
  async transact(begin: string, statements: readonly Statement[]): Promise<Row[][]> {
    const stream = this.#stream
    stream.cork()
    const answers = [{ text: begin }, ...statements, { text: 'COMMIT' }].map((one) => this.#send(one))
    stream.uncork()
    const settled = await Promise.allSettled(answers)
    const failures = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
    if (failures.length > 0) throw failures.find((failure) => !isConsequence(failure)) ?? failures[0]
    const results = settled.map((one) => (one as PromiseFulfilledResult<pg.QueryResult>).value)
    // PostgreSQL answers the COMMIT of a transaction that failed with ROLLBACK, not with an error.
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

  /** Errors of the socket come in many shapes; to those who wait for an answer they are all one. */
  async #send({ text, values }: Statement): Promise<pg.QueryResult> {
    try {
      return await this.#client.query(values === undefined ? { text } : { text, values: values as unknown[] })
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
