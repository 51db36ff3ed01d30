import { StoreUnavailable } from '../../../handoff/store.ts'
import type { Connection, ConnectionOptions, Row, Statement } from './connection.ts'
import type { Connector } from './connector.ts'
import { ConnectionLost, isSessionOver } from './failures.ts'

/** One connection for one kind of work. It is opened on first use, and again after it was lost. */
export class Channel {
  readonly #connector: Connector
  readonly #options: ConnectionOptions
  #opening: Promise<Connection> | undefined
  #open: Connection | undefined
  #isClosed = false
  #underWay = 0

  constructor(connector: Connector, options: ConnectionOptions) {
    this.#connector = connector
    this.#options = options
  }

  get underWay(): number {
    return this.#underWay
  }

  /** For work that must not be sent twice. A session that PostgreSQL has ended is not used again. */
  async use<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    this.#underWay += 1
    try {
      const connection = await this.#connection()
      try {
        return await work(connection)
      } catch (error) {
        if (isSessionOver(error)) connection.destroy()
        throw error
      }
    } finally {
      this.#underWay -= 1
    }
  }

  /** For work that may be sent twice. It is sent again if an idle connection turns out to be dead. */
  async useAgain<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    const rested = this.#open
    try {
      return await this.use(work)
    } catch (error) {
      if (rested === undefined || !(error instanceof ConnectionLost)) throw error
      return this.use(work)
    }
  }

  run(statement: Statement): Promise<Row[]> {
    return this.use((connection) => connection.run(statement))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#opening?.catch(() => {})
    await this.#open?.close()
  }

  async #connection(): Promise<Connection> {
    if (this.#isClosed) throw new StoreUnavailable('store_unavailable', 'the store is closed')
    if (this.#open !== undefined && !this.#open.isLost) return this.#open
    this.#opening ??= this.#connector.connect(this.#options).finally(() => {
      this.#opening = undefined
    })
    const connection = await this.#opening
    this.#open = connection
    return connection
  }
}

/** The number of connections for loads, views and staged rows. */
const BESIDE = 3

export interface Timeouts {
  readonly connectMillis: number
  /** Short, because all requests wait for a running append: a silent connection is given up early. */
  readonly appendMillis: number
  readonly answerMillis: number
}

/** The connections of a node: a small fixed number, each opened on first use. */
export class Channels {
  readonly append: Channel
  readonly flush: Channel
  readonly #beside: readonly Channel[]

  constructor(connector: Connector, { connectMillis, appendMillis, answerMillis }: Timeouts) {
    const channel = (millis: number) => new Channel(connector, { connectMillis, answerMillis: millis })
    this.append = channel(appendMillis)
    this.flush = channel(answerMillis)
    this.#beside = Array.from({ length: BESIDE }, () => channel(answerMillis))
  }

  /** The least busy connection for everything but appends and flushes. */
  get beside(): Channel {
    return this.#beside.reduce((least, channel) => (channel.underWay < least.underWay ? channel : least))
  }

  async close(): Promise<void> {
    await Promise.all([this.append, this.flush, ...this.#beside].map((channel) => channel.close()))
  }
}
