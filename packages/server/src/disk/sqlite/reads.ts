import type { DatabaseSync } from 'node:sqlite'
import type { IndexesOfLane, KnownOfLane } from '../../handoff/disk.ts'
import type { KnownPartition } from '../../handoff/partition.ts'
import type { Asked, Query, Value } from '../statements.ts'
import { Ranges } from './ranges.ts'
import { arrayQuery, type Finder, finder, sqlite } from './tables.ts'

/** The statements of a connection that read, each prepared when it is first used. */
export class Reads {
  readonly #db: DatabaseSync
  readonly #statements = new Map<Query<never>, ReturnType<typeof arrayQuery<unknown[]>>>()
  readonly #known: Finder<KnownPartition>
  readonly #ranges: Ranges

  constructor(db: DatabaseSync) {
    this.#db = db
    this.#known = finder(db, sqlite.knownPartitions, 'WHERE lane = ? AND idx = ? AND id <= ?')
    this.#ranges = new Ranges(db)
  }

  all<Row>(query: Query<Row>, values: readonly Value[]): Row[] {
    let statement = this.#statements.get(query as Query<never>)
    if (statement === undefined) {
      statement = arrayQuery(this.#db, `SELECT ${query.selected} FROM ${query.from}`)
      this.#statements.set(query as Query<never>, statement)
    }
    return statement.all(...values).map(query.read)
  }

  lists<Row>(asked: readonly Asked<Row>[]): Row[][] {
    return asked.map(({ query, values }) => this.all(query, values))
  }

  known({ lane, tail, indexes }: IndexesOfLane): KnownOfLane {
    const found = new Map<number, KnownPartition | null>()
    const isInRange = this.#ranges.contains(lane)
    for (const index of indexes) {
      const row = this.#known.get(lane, index, tail)
      if (row !== undefined) found.set(index, row)
      else if (isInRange(index)) found.set(index, null)
    }
    return found
  }
}
