import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { postgres } from '../../src/disk/postgres/dialect.ts'
import { sqlite } from '../../src/disk/sqlite/dialect.ts'
import { schema } from '../../src/disk/sqlite/schema.ts'
import { fieldNames } from '../../src/handoff/archived.ts'
import { sections } from '../../src/handoff/table-fields.ts'
import { CleanDatabases } from '../support/clean-databases.ts'

// A table or column that is added to a store must be included in exports, or be listed here with the reason
// why not.

const notArchived = {
  SQLite: {
    entry_slot: 'entries are in rows when a store is exported',
    flushed:
      'the next ids are in the header of the file, the number of the last entry is of this store alone',
    probe: 'says nothing',
    'task_table.position': 'the order of the rows',
  },
  PostgreSQL: {
    entry: 'entries are in rows when a store is exported',
    flushed:
      'the next ids are in the header of the file, the number of the last entry is of this store alone',
    head: 'who leads, and the secret that nodes on this database share',
    schema: 'its version is in the header of the file',
    'task_table.position': 'the order of the rows',
  },
}

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.dispose())

/** `table` and `table.column` of everything that is stored but not exported. */
const left = (columns: readonly [string, string][], archived: ReadonlyMap<string, readonly string[]>) => [
  ...new Set(
    columns.flatMap(([table, column]) => {
      const names = archived.get(table)
      if (names === undefined) return [table]
      return names.includes(column) ? [] : [`${table}.${column}`]
    }),
  ),
]

test('every table and column of SQLite is exported, or listed as not exported', () => {
  const db = new DatabaseSync(':memory:')
  db.exec(schema)
  const columns = db
    .prepare(
      `SELECT t.name AS "table", c.name AS "column" FROM sqlite_schema t, pragma_table_info(t.name) c
       WHERE t.type = 'table' ORDER BY 1, 2`,
    )
    .all()
    .map((row): [string, string] => [String(row['table']), String(row['column'])])
  const archived = new Map(
    sections.map((section) => [sqlite.archived[section].name, sqlite.archived[section].names]),
  )
  expect(left(columns, archived)).toEqual(Object.keys(notArchived.SQLite).toSorted())
})

test('every table and column of PostgreSQL is exported, or listed as not exported', async () => {
  const { name } = await (await CleanDatabases.on(server)).create()
  const rows = await server.query(
    `SELECT table_name, column_name FROM information_schema.columns
     WHERE table_schema = 'baton' AND is_generated = 'NEVER' ORDER BY table_name COLLATE "C", 2`,
    name,
  )
  const columns = rows.map((row): [string, string] => [String(row['table_name']), String(row['column_name'])])
  const archived = new Map(
    sections.map((section) => [postgres.archived[section].name, postgres.archived[section].names]),
  )
  expect(left(columns, archived)).toEqual(Object.keys(notArchived.PostgreSQL).toSorted())
})

test('an export has all fields of a table', () => {
  for (const section of sections) {
    const fields = sqlite.archived[section].columns.map(({ field }) => field)
    expect(fieldNames[section]).toEqual([...new Set(fields)])
  }
})
