import { throughputSchema } from './throughput-rows.ts'

/** Migrates version 7 to version 8. Each statement only adds something. */
export const additionsTo7: readonly string[] = [
  'ALTER TABLE partition ADD COLUMN extra_fields TEXT;',
  'ALTER TABLE partition ADD COLUMN traceparent TEXT;',
  throughputSchema,
]
