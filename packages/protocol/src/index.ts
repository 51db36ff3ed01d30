export { type Attempt, attemptSchema, type Failure, failureSchema } from './attempt.ts'
export {
  type AuditEntry,
  type AuditList,
  auditEntrySchema,
  auditKinds,
  auditListSchema,
} from './audit.ts'
export {
  type CallBackAnswer,
  type CallBackCheck,
  type CallBackOptions,
  callBackAnswerSchema,
  callBackRequestSchema,
  checkCallBack,
} from './call-back.ts'
export type { CallBack, CalledBackPartition } from './checked-call-back.ts'
export { descriptorSchema, type PartitionDescriptor } from './descriptor.ts'
export {
  eventSchemas,
  type ParkedEvent,
  parkedEventSchema,
  resetEventSchema,
  type StreamEvent,
} from './events.ts'
export {
  type InstanceList,
  type InstanceStatus,
  type InstanceTotals,
  instanceIdSchema,
  instanceListSchema,
  instanceStatusSchema,
  instanceTotalsSchema,
  type ProducedTask,
  producedTaskSchema,
  type ReleaseAnswer,
  releaseAnswerSchema,
} from './instance.ts'
export { leaseIdSchema, type Refusal, refusalSchema } from './lease-reference.ts'
export { namedSchemas } from './named-schemas.ts'
export { type Conflict, conflictSchema, type Problem, problemSchema } from './problem-schema.ts'
export {
  type Lease,
  leaseSchema,
  type PullAnswer,
  type PulledPartition,
  pullAnswerSchema,
  pulledPartitionSchema,
} from './pull.ts'
export {
  checkRenewal,
  type RenewAnswer,
  type RenewedLease,
  renewAnswerSchema,
  renewedLeaseSchema,
  renewRequestSchema,
} from './renew.ts'
export {
  checkSettlements,
  type SettleAnswer,
  type Settlement,
  settleAnswerSchema,
  settlementSchema,
  settleRequestSchema,
} from './settle.ts'
export { type StateCounts, stateCountsSchema } from './state-counts.ts'
export {
  type CloudEvent,
  cloudEventSchema,
  type Delivery,
  type DeliveryList,
  deliveryListSchema,
  deliverySchema,
  type EventPage,
  eventPageSchema,
  type RotateSecretRequest,
  rotateSecretRequestSchema,
  type SubscribeRequest,
  type Subscription,
  type SubscriptionList,
  type SubscriptionSecret,
  type SubscriptionStatus,
  subscribeRequestSchema,
  subscriptionListSchema,
  subscriptionSchema,
  subscriptionSecretSchema,
  subscriptionStatusSchema,
  type UnsubscribeAnswer,
  unsubscribeAnswerSchema,
} from './subscription.ts'
export {
  type IndexRanges,
  indexRangesSchema,
  type LevelView,
  levelViewSchema,
  type ReportedRecords,
  reportedRecordsSchema,
  type TaskList,
  type TaskSummary,
  type TaskView,
  taskListSchema,
  taskSummarySchema,
  taskViewSchema,
  type WaitingFor,
  waitingForSchema,
} from './task.ts'
export {
  type ControlAnswer,
  controlAnswerSchema,
  type LevelBarrierRequest,
  levelBarrierRequestSchema,
  type RetryRequest,
  retryRequestSchema,
  type SealRequest,
  sealRequestSchema,
} from './task-control.ts'
export {
  type ManifestLine,
  manifestLineSchema,
  type PartitionList,
  type PartitionRow,
  partitionListSchema,
  partitionRowSchema,
} from './task-partitions.ts'
export {
  type TaskSettings,
  type TaskSettingsAnswer,
  type TaskSettingsRequest,
  taskSettingsAnswerSchema,
  taskSettingsRequestSchema,
  taskSettingsSchema,
} from './task-settings.ts'
export { type AttemptSeconds, attemptSecondsSchema, type Straggler, stragglerSchema } from './timing.ts'
export { type Totals, totalsSchema } from './totals.ts'
export { type Violation, violationSchema } from './violation-schema.ts'
export * from './without-schemas.ts'
