import { describe, expect, test } from 'vitest'
import { flushedBy } from '../../src/disk/flush.ts'
import { textOf as inPostgres, postgres } from '../../src/disk/postgres/dialect.ts'
import { textOf as inSqlite, sqlite } from '../../src/disk/sqlite/dialect.ts'
import { paceFields } from '../../src/handoff/stored.ts'

// The SQL that follows from a list of fields, shown for a small table and for a part of one.

const spaced = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()

const pace = { task: 3, second: 60, partitions: 2, records: 500 }

test('the fields of the small table', () => {
  expect(paceFields).toEqual({
    task: 'integer',
    second: 'integer',
    partitions: 'integer',
    records: 'integer',
  })
})

describe('SQLite', () => {
  const statements = flushedBy(sqlite).map(({ statement }) => spaced(inSqlite(statement)))

  test('creates a table', () => {
    expect(spaced(sqlite.pace.create())).toBe(
      'CREATE TABLE pace ( task INTEGER NOT NULL, second INTEGER NOT NULL, partitions INTEGER NOT NULL, records INTEGER NOT NULL, PRIMARY KEY (task, second) )',
    )
  })

  test('writes a row with each run of a statement', () => {
    expect(statements).toContain(
      'INSERT INTO pace (task, second, partitions, records) VALUES (?, ?, ?, ?) ON CONFLICT (task, second) DO UPDATE SET partitions = excluded.partitions, records = excluded.records',
    )
    expect(sqlite.pace.values(pace)).toEqual([3, 60, 2, 500])
    expect(statements).toContain('UPDATE delivery SET progress = ?3 WHERE subscription = ?1 AND event = ?2')
    expect(statements).toContain('DELETE FROM pace WHERE task = ?1')
  })

  test('reads a row as a list of values; a tag as text', () => {
    expect(sqlite.levels.selected()).toBe(
      'level.level, CAST(level.virtual AS text), CAST(level.max_finish_tag AS text)',
    )
    expect(sqlite.levels.read([1, '9007199254740993', '0'])).toEqual({
      level: 1,
      virtual: 9_007_199_254_740_993n,
      maxFinishTag: 0n,
    })
  })
})

describe('PostgreSQL', () => {
  const statements = flushedBy(postgres).map(({ statement }) => spaced(inPostgres(statement)))

  test('creates a table', () => {
    expect(spaced(postgres.pace.create())).toBe(
      'CREATE TABLE baton.pace ( task bigint NOT NULL, second bigint NOT NULL, partitions bigint NOT NULL, records bigint NOT NULL, PRIMARY KEY (task, second) )',
    )
  })

  test('writes many rows with one array for each column', () => {
    expect(statements).toContain(
      'INSERT INTO baton.pace (task, second, partitions, records) SELECT n.task, n.second, n.partitions, n.records FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS n (task, second, partitions, records) ON CONFLICT (task, second) DO UPDATE SET partitions = excluded.partitions, records = excluded.records',
    )
    expect(statements).toContain(
      'UPDATE baton.delivery SET progress = n.progress FROM unnest($1::text[], $2::bigint[], $3::json[]) AS n (subscription, event, progress) WHERE delivery.subscription = n.subscription AND delivery.event = n.event',
    )
    expect(statements).toContain(
      'DELETE FROM baton.pace USING unnest($1::bigint[]) AS n (task) WHERE pace.task = n.task',
    )
  })
})
