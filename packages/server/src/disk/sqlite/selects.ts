import type { DatabaseSync } from 'node:sqlite'
import type { Asked, Query, Value } from '../statements.ts'
import { arrayQuery } from './dialect.ts'

/** The statements of a connection that read, each prepared when it is first used. */
export class Selects {
  readonly #db: DatabaseSync
  readonly #statements = new Map<Query<never>, ReturnType<typeof arrayQuery<unknown[]>>>()

  constructor(db: DatabaseSync) {
    this.#db = db
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
}
