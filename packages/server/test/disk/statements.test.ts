import { describe, expect, test } from 'vitest'
import { flushedBy } from '../../src/disk/flush.ts'
import { textOf as inPostgres, postgres } from '../../src/disk/postgres/dialect.ts'
import { textOf as inSqlite, sqlite } from '../../src/disk/sqlite/dialect.ts'
import { checkpointFields } from '../../src/handoff/stored.ts'

// The SQL that follows from a list of fields, shown for a small table and for a part of one.

const spaced = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()

const checkpoint = { partition: 3, text: 'page 7' }

test('the fields of the small table', () => {
  expect(checkpointFields).toEqual({ partition: 'key', text: 'text' })
})

describe('SQLite', () => {
  const statements = flushedBy(sqlite).map(({ statement }) => spaced(inSqlite(statement)))

  test('creates a table', () => {
    expect(spaced(sqlite.checkpoints.create())).toBe(
      'CREATE TABLE checkpoint ( partition INTEGER PRIMARY KEY, text TEXT NOT NULL )',
    )
  })

  test('writes a row with each run of a statement', () => {
    expect(statements).toContain(
      'INSERT INTO checkpoint (partition, text) VALUES (?, ?) ON CONFLICT (partition) DO UPDATE SET text = excluded.text',
    )
    expect(sqlite.checkpoints.values(checkpoint)).toEqual([3, 'page 7'])
    expect(statements).toContain('UPDATE delivery SET progress = ?3 WHERE subscription = ?1 AND event = ?2')
    expect(statements).toContain('DELETE FROM checkpoint WHERE partition = ?1')
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
    expect(spaced(postgres.checkpoints.create())).toBe(
      'CREATE TABLE baton.checkpoint ( partition bigint PRIMARY KEY, text text COLLATE "C" NOT NULL )',
    )
  })

  test('writes many rows with one array for each column', () => {
    expect(statements).toContain(
      'INSERT INTO baton.checkpoint (partition, text) SELECT n.partition, n.text FROM unnest($1::bigint[], $2::text[]) AS n (partition, text) ON CONFLICT (partition) DO UPDATE SET text = excluded.text',
    )
    expect(statements).toContain(
      'UPDATE baton.delivery SET progress = n.progress FROM unnest($1::text[], $2::bigint[], $3::json[]) AS n (subscription, event, progress) WHERE delivery.subscription = n.subscription AND delivery.event = n.event',
    )
    expect(statements).toContain(
      'DELETE FROM baton.checkpoint USING unnest($1::bigint[]) AS n (partition) WHERE checkpoint.partition = n.partition',
    )
  })
})
