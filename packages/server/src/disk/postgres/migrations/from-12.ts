import { throughputSchema } from '../throughput-rows.ts'

/** Version 13 adds to version 12, and changes nothing that was there. */
const additions = [throughputSchema]

export const migrateFrom12 = additions.join('\n')
