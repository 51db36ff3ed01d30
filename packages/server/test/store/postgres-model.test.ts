import { describeModel } from '../handoff/model-properties.ts'
import { postgresHarness } from './postgres-harness.ts'

describeModel(postgresHarness(), { crowded: 20, long: 2 })
describeModel(postgresHarness('whenever-possible'), { crowded: 20, long: 2 })
