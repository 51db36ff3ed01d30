import type { DatabaseSync } from 'node:sqlite'
import { SCHEMA_VERSION, type Schema, stepsTo } from '../schema-version.ts'
import { schema as sql } from './schema.ts'

/** "Batn", stored as the file's application_id. The schema version is its user_version. */
const APPLICATION_ID = 0x4261746e

const current: Schema = { version: SCHEMA_VERSION, sql, steps: new Map() }

/** How to use another store, in errors. */
export const ANOTHER_FOLDER = 'choose another folder with --data'

/** Brings the file of a data folder to the current version in one transaction. A new file gets all tables. */
export function migrate(db: DatabaseSync, folder: string, schema = current): void {
  const store = { name: `the data folder ${folder}`, another: ANOTHER_FOLDER }
  const steps = stepsTo(schema, versionOf(db), store)
  if (steps.length === 0) return
  db.exec('BEGIN IMMEDIATE')
  try {
    for (const step of steps) db.exec(step)
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${schema.version}; COMMIT`)
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** These tables were in all files from before version 1, and together in no other program's database. */
const EARLIER_TABLES = ['task', 'lane', 'partition', 'pull_key']

/** Whose file it is: ours, ours from before version 1, nobody's yet, or that of another program. */
export function ownerOf(db: DatabaseSync): 'ours' | 'unreleased' | 'new' | 'foreign' {
  if (pragma(db, 'application_id') === APPLICATION_ID) return 'ours'
  const names = new Set(
    db
      .prepare('SELECT name FROM sqlite_schema')
      .all()
      .map(({ name }) => name),
  )
  if (names.size === 0 && versionOf(db) === 0) return 'new'
  return EARLIER_TABLES.every((table) => names.has(table)) ? 'unreleased' : 'foreign'
}

export const versionOf = (db: DatabaseSync): number => pragma(db, 'user_version')

const pragma = (db: DatabaseSync, name: string): number =>
  db.prepare(`PRAGMA ${name}`).get()?.[name] as number
