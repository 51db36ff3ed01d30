import { sqliteHarness } from '../store/sqlite-harness.ts'
import { describeModel } from './model-properties.ts'

/** `memory-model.test.ts` runs more steps on the memory disk, which is faster; this runs the SQLite disk. */
describeModel(sqliteHarness, { crowded: 25, long: 3 })
