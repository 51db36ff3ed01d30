import type { DatabaseSync } from 'node:sqlite'
import type { Ranked } from '../../handoff/rules/fair-order.ts'
import { CANDIDATE_COLUMNS, type Candidate, type CandidateRow, candidateOf } from './candidate.ts'
import type { Ledger } from './ledger.ts'
import { arrayQuery, query } from './query.ts'

type Row = [lane: number, rankText: string, fresh: number, ...candidate: CandidateRow]

interface PlaceRow {
  readonly level: number
  readonly rankText: string
  readonly id: number
}

/** The index of ready partitions, as it stands in the file. */
export class ReadyRows {
  readonly #ledger: Ledger
  readonly #sql: ReturnType<typeof prepare>

  constructor(db: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger
    this.#sql = prepare(db)
  }

  first(limit: number): Candidate[] {
    return this.#sql.first.all(limit).map((row) => this.#candidate(row))
  }

  /** The first of open lanes among so many from a place on. Which lanes are open is read from the rows of their tasks. */
  firstOpen(from: Ranked, among: number, limit: number): Candidate[] {
    return this.#sql.firstOpen.all(...columnsOf(from), among, limit).map((row) => this.#candidate(row))
  }

  /** The place that comes after so many from a place on, if there are more. */
  behind(from: Ranked, passed: number): Ranked | undefined {
    const row = this.#sql.behind.get(...columnsOf(from), passed)
    return row && { id: row.id, lane: { level: row.level }, rank: BigInt(row.rankText) }
  }

  byId(id: number): Candidate {
    const row = this.#sql.byId.get(id)
    if (row === undefined) throw new Error(`partition row ${id} is missing`)
    return this.#candidate(row)
  }

  isAnyOn(level: number): boolean {
    return this.#sql.anyOn.get(level) !== undefined
  }

  #candidate([lane, rankText, fresh, ...row]: Row): Candidate {
    return candidateOf(row, this.#ledger.entries.lane(lane), BigInt(rankText), fresh === 1)
  }
}

const columnsOf = ({ lane, rank, id }: Ranked) => [lane.level, rank, id] as const

function prepare(db: DatabaseSync) {
  const columns = `lane, CAST(rank AS TEXT), fresh, ${CANDIDATE_COLUMNS}`
  const first = arrayQuery<Row>(
    db,
    `SELECT ${columns} FROM partition INDEXED BY partition_ready
     WHERE state = 'ready' ORDER BY level, rank, id LIMIT ? + 0`,
  )
  // The rule is that of lane-rules.ts, which has the last word on what is read.
  const firstOpen = arrayQuery<Row>(
    db,
    `SELECT first.* FROM
       (SELECT ${columns} FROM partition INDEXED BY partition_ready
        WHERE state = 'ready' AND (level, rank, id) >= (?, ?, ?) ORDER BY level, rank, id LIMIT ? + 0) AS first
     CROSS JOIN lane ON lane.id = first.lane CROSS JOIN task ON task.id = lane.task
     WHERE NOT task.paused AND NOT task.cancelled AND (NOT task.level_barrier OR lane.level <= task.open_level)
     LIMIT ? + 0`,
  )
  return {
    first,
    firstOpen,
    byId: arrayQuery<Row>(db, `SELECT ${columns} FROM partition WHERE id = ?`),
    behind: query<PlaceRow>(
      db,
      `SELECT level, CAST(rank AS TEXT) AS rankText, id FROM partition INDEXED BY partition_ready
       WHERE state = 'ready' AND (level, rank, id) >= (?, ?, ?) ORDER BY level, rank, id LIMIT 1 OFFSET ?`,
    ),
    anyOn: db.prepare(`SELECT 1 AS found FROM partition WHERE state = 'ready' AND level = ? LIMIT 1`),
  }
}
