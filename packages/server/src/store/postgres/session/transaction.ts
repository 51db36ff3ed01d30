import { NOW, type Statement, statement } from './statement.ts'

/** One transaction. Statements that need no answer of one another may be sent in one go. */
export interface Transaction {
  run<Found>(statement: Statement<Found>, values?: readonly unknown[]): Promise<Found[]>
  /** As `run`, for a statement that changes something: a transaction without any needs no durable commit. */
  write<Found>(statement: Statement<Found>, values?: readonly unknown[]): Promise<Found[]>
  /**
   * As `write`, for when nothing depends on the answer: it is sent, and the commit waits for it. A
   * pull takes two round trips this way instead of four.
   */
  post(statement: Statement, values?: readonly unknown[]): void
  /**
   * As `post`, for a statement that also counts up the mark of its connection: its parameters after
   * `values` are the connection's session and the number. Saves the commit a statement.
   */
  postMarked(statement: Statement, values: readonly unknown[]): void
  /** The database's clock, in milliseconds: the same throughout the transaction, asked for when first needed. */
  now(): Promise<number>
  /** What `now` is, if that is known without asking: a clock that was handed in, or what was learned. */
  readonly knownNow: number | null
  /** A statement that reads the clock on the way saves the others the question. */
  learnNow(now: number): void
}

export interface TransactionOptions {
  /**
   * `durable` is what a request is answered on. `relaxed` may be lost by a crash of the server,
   * for work that is then done again by itself. `reading` sees one state of everything.
   */
  readonly kind?: 'durable' | 'relaxed' | 'reading'
}

export const nowStatement = statement('now', `SELECT ${NOW} AS now`)
