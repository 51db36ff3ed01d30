import { describeDisk } from './conformance/index.ts'
import { sqliteHarness } from './sqlite-harness.ts'

describeDisk(sqliteHarness)
