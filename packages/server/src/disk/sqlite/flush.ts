import type { DatabaseSync } from 'node:sqlite'
import type { RowChanges } from '../../handoff/disk.ts'
import type { NextIds } from '../../handoff/stored.ts'
import { flushedBy } from '../flush.ts'
import { arrayQuery, sqlite, writer } from './dialect.ts'
import { Ranges } from './ranges.ts'

const flushed = flushedBy(sqlite)

/** Writes the changes of a flush to rows. Must be called within a transaction. */
export class FlushedRows {
  readonly #sql: ReturnType<typeof prepare>
  readonly #ranges: Ranges

  constructor(db: DatabaseSync) {
    this.#sql = prepare(db)
    this.#ranges = new Ranges(db)
  }

  nextIds(): NextIds {
    const [task, lane, partition, event] = this.#sql.nextIds.get() ?? [1, 1, 1, 1]
    return { task, lane, partition, event }
  }

  write(rowChanges: RowChanges): void {
    for (const { write, rowsOf } of this.#sql.flushed) write(rowsOf(rowChanges))
    for (const range of rowChanges.ranges) this.#ranges.add(range)
    if (rowChanges.nextIds !== null) this.setNextIds(rowChanges.nextIds)
  }

  setNextIds({ task, lane, partition, event }: NextIds): void {
    this.#sql.setNextIds.run(task, lane, partition, event)
  }
}

function prepare(db: DatabaseSync) {
  return {
    flushed: flushed.map(({ statement, rowsOf }) => ({ write: writer(db, statement), rowsOf })),
    nextIds: arrayQuery<[task: number, lane: number, partition: number, event: number]>(
      db,
      'SELECT next_task, next_lane, next_partition, next_event FROM flushed WHERE id = 1',
    ),
    setNextIds: db.prepare(
      'UPDATE flushed SET next_task = ?, next_lane = ?, next_partition = ?, next_event = ? WHERE id = 1',
    ),
  }
}
