import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { migrate } from '../../src/disk/sqlite/migrate.ts'
import { SqliteConnection } from '../../src/disk/sqlite/sqlite-connection.ts'
import { noRowChanges } from '../../src/handoff/engine/state/unflushed.ts'
import type { PartitionDescriptor } from '../../src/handoff/partition.ts'
import { aRow } from './conformance/builders.ts'

const [NORMAL, FULL] = [1, 2]

test('appends are always synced; flushes need not be', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db, ':memory:')
  db.exec('PRAGMA synchronous = FULL')
  const session = new SqliteConnection(db, '')
  const syncing = () => db.prepare('PRAGMA synchronous').get()?.['synchronous']
  const append = (number: number) => {
    let during: unknown
    const newRows: PartitionDescriptor[] = [aRow(number, 1)]
    newRows.slice = () => {
      during = syncing()
      return []
    }
    session.append({ number, body: '[]', newRows, newKeys: [] })
    return during
  }
  const flush = (failing: boolean) => {
    let during: unknown
    const rowChanges = noRowChanges()
    rowChanges.levels.values = () => {
      during = syncing()
      if (failing) throw new Error('broken')
      return [].values()
    }
    try {
      session.flush(rowChanges, 0)
    } catch {
      // As wanted.
    }
    return during
  }
  expect(append(1)).toBe(FULL)
  expect(flush(false)).toBe(NORMAL)
  expect(append(2)).toBe(FULL)
  expect(flush(true)).toBe(NORMAL)
  expect(append(3)).toBe(FULL)
  db.close()
})
