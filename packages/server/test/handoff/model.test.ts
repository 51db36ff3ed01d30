import { sqliteHarness } from '../store/sqlite-harness.ts'
import { describeModel } from './model-properties.ts'

/** The engine has its runs in memory, where they cost less; here its disk is held against the model. */
describeModel(sqliteHarness, { crowded: 25, long: 3 })
