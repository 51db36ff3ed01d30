import { describeStore } from '../store/conformance/index.ts'
import { postgresEngineHarness } from './postgres-engine-harness.ts'

describeStore(postgresEngineHarness())
