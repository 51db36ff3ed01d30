import { type Appended, KnownKeys, type OpenedDisk, type RowChanges } from '../../handoff/disk.ts'
import type { Log } from '../../handoff/log.ts'
import type { ClusterNode } from '../../handoff/stored.ts'
import { append } from './append.ts'
import { deletableTo, flushStatements } from './flush.ts'
import { type RowsWritten, resignStatement, rowFences, takeOver } from './leader-row.ts'
import { BEGIN_WRITING, type Statement } from './session/connection.ts'
import type { Channels } from './session/connector.ts'
import { asUnavailable, foundNoRow, NotLeader, orUnavailable } from './session/errors.ts'

export interface OpenedPostgres extends OpenedDisk {
  readonly leaderTerm: string
  /** The database's clock at the take-over, in milliseconds. */
  readonly now: number
}

/** What only the leader may do; the database checks its term each time. */
export class LeaderWrites {
  readonly #channels: Channels
  readonly #node: ClusterNode
  readonly #log: Log | undefined
  /**
   * The term in which this node leads, as far as it knows. Null before, and after a write whose outcome is
   * unknown.
   */
  #leaderTerm: string | null = null
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

  /**
   * With `from`, takes over only if the leader row still has this term, so that one of two nodes that miss
   * the same leader succeeds.
   */
  async open(from?: string | null): Promise<OpenedPostgres> {
    this.#leaderTerm = null
    const { flush, general } = this.#channels
    const { leaderTerm, writes, last, unflushed, nextIds, now } = await orUnavailable(
      takeOver(flush, general, this.#node, this.#log, from),
    )
    this.#leaderTerm = leaderTerm
    this.#last = last
    this.#writes = { sent: writes, done: writes, confirmed: writes }
    this.#deletedTo = 0
    return { last, unflushed, nextIds, now, leaderTerm }
  }

  /** For a graceful stop: other nodes then need not wait until they miss this one. */
  async resign(): Promise<void> {
    const leaderTerm = this.#leaderTerm
    this.#leaderTerm = null
    if (leaderTerm !== null) await orUnavailable(this.#channels.flush.run(resignStatement(leaderTerm)))
  }

  async append(entry: Appended): Promise<void> {
    const leaderTerm = this.#leading()
    const written = this.#writes
    const { done } = written
    const confirmed = { leaderTerm, writes: done > written.confirmed ? done : null }
    try {
      await this.#channels.append.use((connection) => append(connection, confirmed, entry))
      written.confirmed = done
      if (this.#leaderTerm === leaderTerm) this.#last = entry.number
    } catch (error) {
      if (error instanceof KnownKeys) throw error
      this.#doubt(leaderTerm)
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
    const leaderTerm = this.#leading()
    const written = this.#writes
    const fences = rowFences({ leaderTerm, last: this.#last, writes: written.sent, ...flushed })
    written.sent += 1
    try {
      await this.#channels.flush.use((connection) =>
        connection.transact(BEGIN_WRITING, [...fences, ...statements]),
      )
      written.done += 1
    } catch (error) {
      this.#doubt(leaderTerm)
      throw foundNoRow(error) ? new NotLeader({ cause: error }) : asUnavailable(error)
    }
  }

  async close(): Promise<void> {
    this.#leaderTerm = null
    await this.#channels.close()
  }

  #leading(): string {
    if (this.#leaderTerm === null) throw new NotLeader()
    return this.#leaderTerm
  }

  /** What the database has stored is unknown until the next `open`. */
  #doubt(leaderTerm: string): void {
    if (this.#leaderTerm === leaderTerm) this.#leaderTerm = null
  }
}
