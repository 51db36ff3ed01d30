import { sqliteHarness } from '../store/sqlite-harness.ts'
import { describeModel } from './model-properties.ts'

/**
 * The engine is tested on a memory disk, which is faster; here its SQLite disk is compared with the model.
 */
describeModel(sqliteHarness, { crowded: 25, long: 3 })
