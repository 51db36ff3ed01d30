import type { DatabaseSync } from 'node:sqlite'
import { StoreRefused } from '../../handoff/store.ts'
import { migrateFrom6 } from './migrate-from-6.ts'
import { migrateFrom7 } from './migrate-from-7.ts'
import { SCHEMA_VERSION, schema } from './schema.ts'

interface Step {
  readonly run: (db: DatabaseSync) => void
  /** The version that the file has then. */
  readonly to: number
}

/** By the version that a file has. A step that makes the tables of today anew leads to the version of today. */
const steps: ReadonlyMap<number, Step> = new Map([
  [6, { run: migrateFrom6, to: SCHEMA_VERSION }],
  [7, { run: migrateFrom7, to: 8 }],
])

/** Brings a file to the version that this program speaks, each step in a transaction of its own. A new one starts with it. */
export function migrate(db: DatabaseSync, path: string): void {
  const version = versionOf(db)
  if (version > SCHEMA_VERSION)
    throw new StoreRefused(
      `the data folder ${path} has schema version ${version}, and this program knows versions up to ${SCHEMA_VERSION}; start a Baton that knows version ${version}`,
    )
  if (version === 0) inTransaction(db, () => db.exec(schema), SCHEMA_VERSION)
  for (let at = versionOf(db); at < SCHEMA_VERSION; at = versionOf(db)) {
    const step = steps.get(at)
    if (step === undefined)
      throw new StoreRefused(
        `the data folder ${path} has schema version ${at}, from before the first release, which this program cannot read; choose another folder with --data`,
      )
    inTransaction(db, step.run, step.to)
  }
}

function inTransaction(db: DatabaseSync, step: (db: DatabaseSync) => void, to: number): void {
  db.exec('BEGIN IMMEDIATE')
  try {
    step(db)
    db.exec(`PRAGMA user_version = ${to}; COMMIT`)
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

export function versionOf(db: DatabaseSync): number {
  return db.prepare('PRAGMA user_version').get()?.['user_version'] as number
}
