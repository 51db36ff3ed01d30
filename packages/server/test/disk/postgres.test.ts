import { describeDisk } from './conformance/index.ts'
import { postgresHarness } from './postgres-harness.ts'

describeDisk(postgresHarness())
