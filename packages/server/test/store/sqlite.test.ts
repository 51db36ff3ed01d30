import { describeStore } from './conformance/index.ts'
import { sqliteHarness } from './sqlite-harness.ts'

describeStore(sqliteHarness)
