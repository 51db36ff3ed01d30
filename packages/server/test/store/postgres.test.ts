import { describeStore, diskTopics } from './conformance/index.ts'
import { postgresHarness } from './postgres-harness.ts'

/** `postgres.long.test.ts` has all topics. */
describeStore(postgresHarness(), diskTopics)
