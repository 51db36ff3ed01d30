import { describe } from 'vitest'
import { auditTopic } from './audit.ts'
import { entriesTopic } from './entries.ts'
import type { DiskHarness } from './harness.ts'
import { instancesTopic } from './instances.ts'
import { maintenanceTopic } from './maintenance.ts'
import { outboxTopic } from './outbox.ts'
import { readsTopic } from './reads.ts'
import { rowChangesTopic } from './row-changes.ts'
import { throughputTopic } from './throughput.ts'
import { viewsTopic } from './views.ts'

/** What every disk must do, call by call. */
const topics = [
  entriesTopic,
  rowChangesTopic,
  readsTopic,
  maintenanceTopic,
  viewsTopic,
  instancesTopic,
  outboxTopic,
  throughputTopic,
  auditTopic,
]

export function describeDisk(harness: DiskHarness): void {
  describe(`the ${harness.name} disk`, () => {
    for (const topic of topics) topic(harness)
  })
}
