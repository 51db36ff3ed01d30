import type { DatabaseSync } from 'node:sqlite'
import { StoreRefused } from '../../handoff/store.ts'
import { migrateFrom6 } from './migrate-from-6.ts'
import { deliverySchema, deliveryTable } from './outbox-rows.ts'
import { schema } from './schema.ts'
import { throughputSchema } from './throughput-rows.ts'

/** The version of the schema, stored as the file's user_version. */
export const SCHEMA_VERSION = 9

interface Step {
  /** The version after this step. */
  readonly to: number
  run(db: DatabaseSync): void
}

const addedIn8 = `
ALTER TABLE partition ADD COLUMN extra_fields TEXT;
ALTER TABLE partition ADD COLUMN traceparent TEXT;
${throughputSchema}`

const columns = deliveryTable.names.join(', ')
const changedIn9 = `
DROP INDEX delivery_pending;
DROP INDEX delivery_pending_of_task;
ALTER TABLE delivery RENAME TO delivery_of_8;
${deliverySchema}
INSERT INTO delivery (${columns}) SELECT ${columns} FROM delivery_of_8;
DROP TABLE delivery_of_8;`

/**
 * The steps to later versions, by current version. A step that creates all tables uses the current `schema`.
 */
const steps: ReadonlyMap<number, Step> = new Map([
  [6, { to: SCHEMA_VERSION, run: migrateFrom6 }],
  [7, { to: 8, run: (db) => db.exec(addedIn8) }],
  [8, { to: 9, run: (db) => db.exec(changedIn9) }],
])

/**
 * Migrates a file to the current version, each step in its own transaction. A new file gets the current
 * schema at once.
 */
export function migrate(db: DatabaseSync, path: string): void {
  const version = versionOf(db)
  if (version > SCHEMA_VERSION)
    throw new StoreRefused(
      `the data folder ${path} has schema version ${version}, and this program supports versions up to ${SCHEMA_VERSION}; start a version of Baton that supports version ${version}`,
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
