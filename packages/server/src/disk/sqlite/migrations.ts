import type { DatabaseSync } from 'node:sqlite'
import { StoreRefused } from '../../handoff/store.ts'
import { migrateFrom6 } from './migrate-from-6.ts'
import { additionsTo7 } from './migrate-from-7.ts'
import { SCHEMA_VERSION, schema } from './schema.ts'

interface Step {
  /** The version that it leads to. */
  readonly to: number
  run(db: DatabaseSync): void
}

/** What brings a file to a later version, by the version that it has. What makes all tables makes those of today. */
const steps: ReadonlyMap<number, Step> = new Map([
  [6, { to: SCHEMA_VERSION, run: migrateFrom6 }],
  [7, { to: 8, run: (db) => db.exec(additionsTo7.join(';\n')) }],
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
