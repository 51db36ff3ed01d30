import { describeStore } from '../store/conformance/index.ts'
import { sqliteEngineHarness } from './sqlite-engine-harness.ts'

describeStore(sqliteEngineHarness())
