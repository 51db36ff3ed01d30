import { sqliteHarness } from '../store/sqlite-harness.ts'
import { describeModel } from './model-properties.ts'

describeModel(sqliteHarness)
