import { throughputSchema } from '../throughput-rows.ts'

/** Migrates version 12 to version 13. Each statement only adds something. */
export const additionsTo12: readonly string[] = [
  'ALTER TABLE baton.partition ADD COLUMN extra_fields text COLLATE "C";',
  'ALTER TABLE baton.partition ADD COLUMN traceparent text COLLATE "C";',
  throughputSchema,
]
