import { randomBytes, randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import pg from 'pg'
import { ConnectionLost, sqlState } from './failures.ts'
import { ENTER_FOR_TRANSACTION } from './presence.ts'
import { sessionSettings, transactionSettings } from './session-settings.ts'
import type { Statement } from './statement.ts'

/** By this name our sessions are told from those of others. */
export const APPLICATION = 'baton'

const INT8 = 20

/**
 * Counts and times fit a number and are read as one. Ranks do not: statements cast them to text.
 */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
}

export interface ConnectionOptions {
  readonly connectMillis: number
  /** The longest that an answer may take before the connection counts as lost. */
  readonly answerMillis: number
  /** Set per transaction instead of per session, and no named statements. */
  readonly pooledByTransaction: boolean
}

/** One session with the server. Statements are sent as they come, without waiting for one another. */
export class Connection {
  readonly #client: pg.Client
  readonly #options: ConnectionOptions
  /** Names this connection in baton.commit_mark; see attempt.ts. */
  readonly session = randomUUID()
  /** The key of an advisory lock that a session of our own has from its introduction to its end; see doubt.ts. */
  readonly lock = String(randomBytes(8).readBigInt64BE())
  /** The number of the last transaction that was marked. */
  lastMark = 0
  /** Of the server's process behind this session, when it was opened. */
  processId = 0
  /** Whether this session has the lock that those who change partitions share; see session/presence.ts. */
  isPresent = false
  #gathering = false
  #lost: ConnectionLost | undefined

  private constructor(client: pg.Client, options: ConnectionOptions) {
    this.#client = client
    this.#options = options
    client.on('error', (error) => this.#lose(error))
    client.on('end', () => this.#lose(undefined))
  }

  static async open(url: string, options: ConnectionOptions): Promise<Connection> {
    const client = new pg.Client({
      connectionString: url,
      application_name: APPLICATION,
      connectionTimeoutMillis: options.connectMillis,
      query_timeout: options.answerMillis,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      pipeline: true,
      types,
    })
    const connection = new Connection(client, options)
    try {
      await client.connect()
      if (!options.pooledByTransaction) await connection.exec(sessionSettings)
      return connection
    } catch (error) {
      connection.destroy()
      throw error
    }
  }

  get isLost(): boolean {
    return this.#lost !== undefined
  }

  /** The level is said each time: a session that is lent has the default of its role. */
  begin(level = 'READ COMMITTED'): string {
    const begin = `BEGIN ISOLATION LEVEL ${level}`
    return this.#options.pooledByTransaction
      ? `${begin}; ${transactionSettings}; ${ENTER_FOR_TRANSACTION}`
      : begin
  }

  /** For what is to be marked. A session that is lent can have no lock of its own, so the mark stands in for it; see doubt.ts. */
  get beginMarked(): string {
    return this.isOwn
      ? this.begin()
      : `${this.begin()}; SELECT FROM baton.commit_mark WHERE session = '${this.session}' FOR UPDATE`
  }

  /** Whether what a session has, such as a lock, is there for the next transaction. */
  get isOwn(): boolean {
    return !this.#options.pooledByTransaction
  }

  async run<Found>(statement: Statement<Found>, values: readonly unknown[] = []): Promise<Found[]> {
    this.#gather()
    return this.#query(statement, values)
  }

  async #query<Found>(statement: Statement<Found>, values: readonly unknown[]): Promise<Found[]> {
    const { name, text } = statement
    const config = this.#options.pooledByTransaction ? { text } : { name, text }
    const result = await this.#guard(this.#client.query({ ...config, values: [...values] }))
    return result.rows as Found[]
  }

  /** A statement that is a transaction of its own. */
  async runAlone<Found>(statement: Statement<Found>, values: readonly unknown[]): Promise<Found[]> {
    if (!this.#options.pooledByTransaction) {
      const { stream } = (this.#client as unknown as { connection: { stream: Socket } }).connection
      stream.cork()
      const answer = this.#query(statement, values)
      stream.uncork()
      return answer
    }
    await this.#beginMarked()
    const [rows, tag] = await Promise.all([this.run(statement, values), this.exec('COMMIT')])
    if (tag !== 'COMMIT') throw new Error('the transaction had failed before it was committed')
    return rows
  }

  /** Nothing may be sent to be committed before the mark is known to be locked, so this is waited for. */
  async #beginMarked(): Promise<void> {
    try {
      await this.exec(this.beginMarked)
    } catch (error) {
      await this.exec('ROLLBACK').catch(() => this.destroy())
      throw error
    }
  }

  /** Text without parameters; may hold several statements. Returns the tag of the last command. */
  async exec(text: string): Promise<string> {
    this.#gather()
    const result = (await this.#guard(this.#client.query(text))) as unknown as
      | pg.QueryResult
      | pg.QueryResult[]
    return (Array.isArray(result) ? result.at(-1)?.command : result.command) ?? ''
  }

  onNotification(listener: (channel: string, payload: string) => void): void {
    this.#client.on('notification', ({ channel, payload }) => listener(channel, payload ?? ''))
  }

  onLost(listener: () => void): void {
    this.#client.on('end', listener)
  }

  async close(): Promise<void> {
    if (!this.isLost) await this.#client.end().catch(() => {})
  }

  destroy(): void {
    this.#lose(undefined)
    const { connection } = this.#client as unknown as { connection: { stream: { destroy(): void } } }
    connection.stream.destroy()
  }

  /** What is sent in one turn of the event loop goes out in one packet. */
  #gather(): void {
    if (this.#gathering) return
    this.#gathering = true
    const { stream } = (this.#client as unknown as { connection: { stream: Socket } }).connection
    stream.cork()
    setImmediate(() => {
      this.#gathering = false
      stream.uncork()
    })
  }

  /** Errors of the socket come in many shapes; to those who wait for an answer they are all one. */
  async #guard<Result>(answer: Promise<Result>): Promise<Result> {
    try {
      return await answer
    } catch (error) {
      if (sqlState(error) !== undefined) throw error
      this.#lose(error)
      throw new ConnectionLost('the connection to PostgreSQL was lost', { cause: error })
    }
  }

  #lose(error: unknown): void {
    this.#lost ??= new ConnectionLost('the connection to PostgreSQL was lost', { cause: error })
  }
}
