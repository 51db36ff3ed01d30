import { describe } from 'vitest'
import { atMostOnceTopic } from './at-most-once.ts'
import { auditTopic } from './audit.ts'
import { callBackTopic } from './call-back.ts'
import { cancelTopic } from './cancel.ts'
import { changesTopic } from './changes.ts'
import { checkpointsTopic } from './checkpoints.ts'
import { chooseTopic } from './choose.ts'
import { expiryTopic } from './expiry.ts'
import { extraFieldsTopic } from './extra-fields.ts'
import { failuresTopic } from './failures.ts'
import { fencingTokensTopic } from './fencing-tokens.ts'
import type { StoreHarness } from './harness.ts'
import { historyTopic } from './history.ts'
import { instancesTopic } from './instances.ts'
import { isolationTopic } from './isolation.ts'
import { lanesTopic } from './lanes.ts'
import { lateSettleTopic } from './late-settle.ts'
import { levelBarrierTopic } from './level-barrier.ts'
import { manyLevelsTopic } from './many-levels.ts'
import { openWorkTopic } from './open-work.ts'
import { outboxTopic } from './outbox.ts'
import { partitionPagesTopic } from './partition-pages.ts'
import { pauseTopic } from './pause.ts'
import { pauseAfterFailuresTopic } from './pause-after-failures.ts'
import { pullKeysTopic } from './pull-keys.ts'
import { pullOrderTopic } from './pull-order.ts'
import { releaseTopic } from './release.ts'
import { renewTopic } from './renew.ts'
import { rerunTopic } from './rerun.ts'
import { restartTopic } from './restart.ts'
import { retentionTopic } from './retention.ts'
import { retryTopic } from './retry.ts'
import { sealTopic } from './seal.ts'
import { settleTopic } from './settle.ts'
import { stuckTaskTopic } from './stuck-task.ts'
import { tableSettingsTopic } from './table-settings.ts'
import { taskSettingsTopic } from './task-settings.ts'
import { taskViewsTopic } from './task-views.ts'
import { throughputTopic } from './throughput.ts'
import { timingTopic } from './timing.ts'
import { undoTopic } from './undo.ts'
import { webhookEventsTopic } from './webhook-events.ts'

/** What every store must do, topic by topic. */
const topics = [
  callBackTopic,
  extraFieldsTopic,
  pullOrderTopic,
  chooseTopic,
  pullKeysTopic,
  settleTopic,
  renewTopic,
  lateSettleTopic,
  releaseTopic,
  expiryTopic,
  undoTopic,
  fencingTokensTopic,
  checkpointsTopic,
  historyTopic,
  failuresTopic,
  timingTopic,
  throughputTopic,
  atMostOnceTopic,
  lanesTopic,
  pauseTopic,
  cancelTopic,
  retryTopic,
  rerunTopic,
  sealTopic,
  levelBarrierTopic,
  stuckTaskTopic,
  taskSettingsTopic,
  pauseAfterFailuresTopic,
  tableSettingsTopic,
  manyLevelsTopic,
  retentionTopic,
  taskViewsTopic,
  partitionPagesTopic,
  instancesTopic,
  changesTopic,
  webhookEventsTopic,
  outboxTopic,
  isolationTopic,
  restartTopic,
  openWorkTopic,
  auditTopic,
]

/**
 * Topics in which what is appended must be found again at once: conflicts, keys, what waits of a table, large
 * arrays, and what a node reads when it takes over. What else a disk does, the suite of the disks specifies.
 */
export const diskTopics = [callBackTopic, chooseTopic, pullKeysTopic, isolationTopic, restartTopic]

export function describeStore(harness: StoreHarness, tested = topics): void {
  describe(`the ${harness.name} store`, () => {
    for (const topic of tested) topic(harness)
  })
}
