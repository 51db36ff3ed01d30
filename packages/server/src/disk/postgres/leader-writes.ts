import { type Appended, KnownKeys, type OpenedSharedDisk, type RowChanges } from '../../handoff/disk.ts'
import type { Log } from '../../handoff/log.ts'
import { NotLeader } from '../../handoff/store.ts'
import type { ClusterNode } from '../../handoff/stored.ts'
import { append } from './append.ts'
import { deletableTo, flushStatements } from './flush.ts'
import { type RowsWritten, resignStatement, rowFences, takeOver } from './leader-row.ts'
import { BEGIN_WRITING, type Statement } from './session/connection.ts'
import type { Channels } from './session/connector.ts'
import { asUnavailable, foundNoRow, orUnavailable } from './session/errors.ts'

/** What only the leader may do; the database checks its term each time. */
export class LeaderWrites {
  readonly #channels: Channels
  readonly #node: ClusterNode
  readonly #log: Log | undefined
  /** The term in which this node leads. Null before, and after a write whose outcome is unknown. */
  #term: string | null = null
  /** The last entry that this node has appended, or that of its take-over. */
  #last = 0
  /**
   * How often rows were written: when all that was sent is carried out, as far as answered, and as far as an
   * entry was appended since. Commits are lost from the newest on, so a database that has this entry has the
   * rows, too.
   */
  #writes = { sent: 0, done: 0, confirmed: 0 }
  #deletedTo = 0

  constructor(channels: Channels, node: ClusterNode, log?: Log) {
    this.#channels = channels
    this.#node = node
    this.#log = log
  }

  async open(from?: string | null): Promise<OpenedSharedDisk> {
    this.#term = null
    const opened = await orUnavailable(takeOver(this.#channels, this.#node, this.#log, from))
    const { writes } = opened
    this.#term = opened.term
    this.#last = opened.last
    this.#writes = { sent: writes, done: writes, confirmed: writes }
    this.#deletedTo = 0
    return opened
  }

  /** For a graceful stop: other nodes then need not wait until they miss this one. */
  async resign(): Promise<void> {
    const term = this.#term
    this.#term = null
    if (term !== null) await orUnavailable(this.#channels.flush.run(resignStatement(term)))
  }

  async append(entry: Appended): Promise<void> {
    const term = this.#leading()
    const written = this.#writes
    const { done } = written
    const confirmed = { term, writes: done > written.confirmed ? done : null }
    try {
      await this.#channels.append.use((connection) => append(connection, confirmed, entry))
      written.confirmed = done
      if (this.#term === term) this.#last = entry.number
    } catch (error) {
      if (error instanceof KnownKeys) throw error
      this.#doubt(term)
      throw asUnavailable(error)
    }
  }

  async flush(rowChanges: RowChanges, upTo: number): Promise<void> {
    const { nextIds } = rowChanges
    await this.#write(flushStatements(rowChanges, upTo, this.#deletedTo), { upTo, nextIds })
    this.#deletedTo = Math.max(this.#deletedTo, deletableTo(upTo))
  }

  /** Writes rows that build on the last entry. */
  write(statements: readonly Statement[]): Promise<void> {
    return this.#write(statements, {})
  }

  /** One connection carries all of these, so they are carried out in the order in which they are counted. */
  async #write(
    statements: readonly Statement[],
    flushed: Pick<RowsWritten, 'upTo' | 'nextIds'>,
  ): Promise<void> {
    const term = this.#leading()
    const written = this.#writes
    const fences = rowFences({ term, last: this.#last, writes: written.sent, ...flushed })
    written.sent += 1
    try {
      await this.#channels.flush.use((connection) =>
        connection.transact(BEGIN_WRITING, [...fences, ...statements]),
      )
      written.done += 1
    } catch (error) {
      this.#doubt(term)
      throw foundNoRow(error) ? new NotLeader({ cause: error }) : asUnavailable(error)
    }
  }

  async close(): Promise<void> {
    this.#term = null
    await this.#channels.close()
  }

  #leading(): string {
    if (this.#term === null) throw new NotLeader()
    return this.#term
  }

  /** What the database has stored is unknown until the next `open`. */
  #doubt(term: string): void {
    if (this.#term === term) this.#term = null
  }
}
