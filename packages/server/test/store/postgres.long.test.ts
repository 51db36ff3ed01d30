import { describeStore } from './conformance/index.ts'
import { postgresHarness } from './postgres-harness.ts'

describeStore(postgresHarness())
