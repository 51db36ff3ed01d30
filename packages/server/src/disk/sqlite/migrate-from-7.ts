import type { DatabaseSync } from 'node:sqlite'
import { throughputSchema } from './throughput-rows.ts'

/** Brings a file of version 7 to version 8, which adds and changes nothing that was there. */
const additions = [throughputSchema]

export function migrateFrom7(db: DatabaseSync): void {
  for (const addition of additions) db.exec(addition)
}
