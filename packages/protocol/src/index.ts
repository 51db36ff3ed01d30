export type { CallBack, CalledBackPartition } from './call-back-relations.ts'
export * from './core.ts'
export { type Scale, scaleSchema } from './scale.ts'
export {
  type Attempt,
  type AttemptSeconds,
  attemptSchema,
  attemptSecondsSchema,
  type Failure,
  failureSchema,
  type Straggler,
  stragglerSchema,
} from './schemas/attempt.ts'
export {
  type AuditEntry,
  type AuditList,
  auditEntrySchema,
  auditKinds,
  auditListSchema,
} from './schemas/audit.ts'
export {
  type CallBackAnswer,
  type CallBackCheck,
  type CallBackOptions,
  callBackAnswerSchema,
  callBackRequestSchema,
  checkCallBack,
} from './schemas/call-back.ts'
export {
  descriptorSchema,
  type OptionalField,
  optionalFields,
  type PartitionDescriptor,
} from './schemas/descriptor.ts'
export {
  eventSchemas,
  type ParkedEvent,
  parkedEventSchema,
  resetEventSchema,
  type StreamEvent,
} from './schemas/events.ts'
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
} from './schemas/instance.ts'
export { leaseIdSchema, type Refusal, refusalSchema } from './schemas/lease-reference.ts'
export { namedSchemas } from './schemas/named-schemas.ts'
export {
  type Conflict,
  conflictSchema,
  type Problem,
  problemSchema,
  type Violation,
  violationSchema,
} from './schemas/problem.ts'
export {
  type Lease,
  leaseSchema,
  type PullAnswer,
  type PulledPartition,
  pullAnswerSchema,
  pulledPartitionSchema,
} from './schemas/pull.ts'
export {
  checkRenewal,
  type RenewAnswer,
  type RenewedLease,
  renewAnswerSchema,
  renewedLeaseSchema,
  renewRequestSchema,
} from './schemas/renew.ts'
export {
  checkSettlements,
  type SettleAnswer,
  type Settlement,
  settleAnswerSchema,
  settlementSchema,
  settleRequestSchema,
} from './schemas/settle.ts'
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
} from './schemas/subscription.ts'
export {
  type IndexRanges,
  indexRangesSchema,
  type LevelView,
  levelViewSchema,
  type ReportedRecords,
  reportedRecordsSchema,
  type StateCounts,
  stateCountsSchema,
  type TaskList,
  type TaskSummary,
  type TaskView,
  type Totals,
  taskListSchema,
  taskSummarySchema,
  taskViewSchema,
  totalsSchema,
  type WaitingFor,
  waitingForSchema,
} from './schemas/task.ts'
export {
  type ControlAnswer,
  controlAnswerSchema,
  type LevelBarrierRequest,
  levelBarrierRequestSchema,
  type RetryRequest,
  retryRequestSchema,
  type SealRequest,
  sealRequestSchema,
} from './schemas/task-control.ts'
export {
  type ManifestLine,
  manifestLineSchema,
  type PartitionList,
  type PartitionRow,
  partitionListSchema,
  partitionRowSchema,
} from './schemas/task-partitions.ts'
export {
  type TaskSettings,
  type TaskSettingsAnswer,
  type TaskSettingsRequest,
  taskSettingsAnswerSchema,
  taskSettingsRequestSchema,
  taskSettingsSchema,
} from './schemas/task-settings.ts'
export {
  type Throughput,
  type ThroughputPoint,
  throughputPointSchema,
  throughputSchema,
} from './throughput.ts'
