import type { HandOffAnswers, HandOffBatch } from '../../../handoff/store.ts'
import type { PlainBatch } from '../pull/plain-hand-off.ts'
import { APPLICATION, type Connection } from '../session/connection.ts'
import type { Connections } from '../session/connections.ts'
import type { Connector } from '../session/connector.ts'
import { asUnavailable } from '../session/failures.ts'
import type { Presence } from '../session/presence.ts'
import type { Transactions } from '../session/transactions.ts'
import type { AloneRules } from './alone-rules.ts'
import { PlainUnderWay } from './plain-under-way.ts'
import { Stint, type StintParts } from './stint.ts'

/** How long until it is tried again: where others are, where something of our own is under way, where little is ready. */
const OTHERS_MILLIS = 1000
const BUSY_MILLIS = 10
const LITTLE_MILLIS = 250
/** How long a stint is put off when what was under way got stuck, longer each time. */
const STUCK_MILLIS = 500
const LONGEST_STUCK_MILLIS = 5000
/** A stint that was shorter was not worth it: the next one is put off, longer each time. */
const SHORT_MILLIS = 100
const LONGEST_PAUSE_MILLIS = 1000

export interface AloneParts extends StintParts {
  /** As `transactions`, for when this node is not alone. */
  readonly entering: Transactions
  readonly connector: Connector
  readonly connections: Connections
  readonly presence: Presence
  /** The process that listens for others; undefined where being alone is not wanted, or nobody would be heard. */
  readonly listener: () => number | undefined
  readonly rules: AloneRules
}

/**
 * A node that has the database to itself hands out from memory, and the database stores one row for a whole batch. Whatever is
 * not a plain hand-off ends that first, and so does another node that comes.
 */
export class Alone {
  readonly #parts: AloneParts
  #stint: Stint | undefined
  #connection: Connection | undefined
  #beginning: Promise<Stint | undefined> | undefined
  #ending: Promise<void> | undefined
  /** What is done by transactions at the moment. */
  #others = 0
  /** Those of them that are plain hand-offs. */
  readonly #plain: PlainUnderWay
  #plainInARow = 0
  /** Other nodes were there since the last stint; they may have died. */
  #hadCompany = false
  #notBefore = 0
  #begunAt = 0
  #pauseMillis: number
  #stuckMillis = STUCK_MILLIS

  constructor(parts: AloneParts) {
    this.#parts = parts
    this.#plain = new PlainUnderWay(parts)
    this.#pauseMillis = parts.rules.afterMillis
  }

  /** Undefined for what has to be done by transactions. */
  async handOff(batch: HandOffBatch, plain: PlainBatch): Promise<HandOffAnswers | undefined> {
    const stint = this.#stint ?? (await this.#begin())
    return stint?.handOff(batch, plain)
  }

  /** For everything else that changes partitions. */
  async transact<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await this.#beside(work)
    } finally {
      this.#plainInARow = 0
      this.#postpone(this.#pauseMillis)
    }
  }

  /** For hand-offs that could be done from memory. */
  async transactPlain(work: () => Promise<HandOffAnswers>): Promise<HandOffAnswers> {
    const answers = await this.#beside(() => this.#plain.track(work()))
    const { settles, pulls } = answers
    if (settles.length > 0 || pulls.some(({ partitions }) => partitions.length > 0)) this.#plainInARow += 1
    return answers
  }

  /** For what looks at partitions and changes none: everything that was answered before is in their rows. */
  async show<Result>(look: (transactions: Transactions) => Promise<Result>): Promise<Result> {
    const stint = this.#stint
    if (stint !== undefined) {
      await stint.writtenUp()
      if (this.#stint === stint && !stint.isLost) return look(this.#parts.transactions)
    }
    return this.#beside(async () => {
      // Before anything is read: what was left behind is written up by whoever enters.
      await this.#parts.entering.enter()
      return look(this.#parts.entering)
    })
  }

  /** Another node is there. */
  makeRoom(): void {
    this.#hadCompany = true
    this.#postpone(OTHERS_MILLIS)
    void this.end()
  }

  async end(): Promise<void> {
    this.#plain.hurry()
    await this.#beginning
    if (this.#stint === undefined && this.#ending === undefined) return
    this.#ending ??= this.#end().finally(() => {
      this.#ending = undefined
    })
    await this.#ending
  }

  async close(): Promise<void> {
    await this.end()
    await this.#connection?.close()
  }

  async #beside<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#others += 1
    try {
      await this.end()
      return await work()
    } finally {
      this.#others -= 1
    }
  }

  async #end(): Promise<void> {
    const stint = this.#stint
    const connection = this.#connection
    if (stint === undefined || connection === undefined) return
    const isWrittenUp = await stint.end()
    try {
      if (isWrittenUp) await this.#parts.presence.comeBack(connection)
    } catch {
      connection.destroy()
    }
    if (!isWrittenUp || connection.isLost) this.#lose(connection)
    this.#stint = undefined
    this.#plainInARow = 0
    const wasShort = performance.now() - this.#begunAt < SHORT_MILLIS
    const { afterMillis } = this.#parts.rules
    this.#pauseMillis = wasShort ? Math.min(this.#pauseMillis * 2, LONGEST_PAUSE_MILLIS) : afterMillis
    this.#postpone(this.#pauseMillis)
  }

  #lose(connection: Connection): void {
    this.#parts.presence.lose(connection)
    this.#connection = undefined
  }

  #begin(): Promise<Stint | undefined> | undefined {
    const { rules, listener } = this.#parts
    if (this.#beginning !== undefined) return this.#beginning
    if (this.#others > this.#plain.size || this.#ending !== undefined || performance.now() < this.#notBefore)
      return undefined
    if (this.#plainInARow < rules.afterBatches || listener() === undefined) return undefined
    this.#beginning = this.#tryBegin()
      .catch((error: unknown) => {
        if (asUnavailable(error) === undefined) this.#parts.failed(error)
        this.#postpone(OTHERS_MILLIS)
        return undefined
      })
      .finally(() => {
        this.#beginning = undefined
      })
    return this.#beginning
  }

  async #tryBegin(): Promise<Stint | undefined> {
    const wait = await this.#plain.wait()
    if (wait !== 'over') {
      this.#postpone(wait === 'stuck' ? this.#stuckMillis : this.#pauseMillis)
      if (wait === 'stuck') this.#stuckMillis = Math.min(this.#stuckMillis * 2, LONGEST_STUCK_MILLIS)
      return undefined
    }
    if (this.#connection?.isLost) this.#lose(this.#connection)
    this.#connection ??= await this.#parts.connector.connect()
    try {
      return await this.#beginWith(this.#connection)
    } catch (error) {
      // It may have the lock for itself.
      this.#connection.destroy()
      throw error
    }
  }

  async #beginWith(connection: Connection): Promise<Stint | undefined> {
    const { connections, presence, rules, listener } = this.#parts
    const own = [...connections.processIds, listener() ?? 0]
    if (await presence.isAccompanied(connection, own, APPLICATION)) {
      this.#hadCompany = true
      this.#postpone(OTHERS_MILLIS)
      return undefined
    }
    if (this.#hadCompany) await this.#parts.filling.fillAbandoned()
    this.#hadCompany = false
    await connections.withEntered((entered) => presence.leave(entered))
    const run = await presence.tryAlone(connection)
    if (run === undefined) {
      this.#postpone(BUSY_MILLIS)
      return undefined
    }
    this.#stuckMillis = STUCK_MILLIS
    const stint = new Stint(this.#parts, connection, run)
    const ready = await stint.begin()
    this.#stint = stint
    this.#begunAt = performance.now()
    if (ready >= rules.leastReady) return stint
    this.#postpone(LITTLE_MILLIS)
    await this.#end()
    return undefined
  }

  #postpone(millis: number): void {
    this.#notBefore = Math.max(this.#notBefore, performance.now() + millis)
  }
}
