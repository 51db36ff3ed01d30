export {
  type CallBack,
  type CallBackAnswer,
  type CallBackCheck,
  type CallBackOptions,
  type CalledBackPartition,
  callBackAnswerSchema,
  callBackRequestSchema,
  checkCallBack,
} from './call-back.ts'
export {
  DEFAULT_TABLE_FIELD,
  descriptorSchema,
  MAX_PARTITION_NAME_LENGTH,
  MAX_TABLE_NAME_LENGTH,
  MAX_TASK_ID_LENGTH,
  type PartitionDescriptor,
} from './descriptor.ts'
export { didYouMean } from './did-you-mean.ts'
export { type ErrorCode, type ErrorCodeEntry, errorCodes } from './error-codes.ts'
export {
  type EventName,
  eventNames,
  eventSchemas,
  type ParkedEvent,
  parkedEventSchema,
  resetEventSchema,
  type StreamEvent,
} from './events.ts'
export { checkIdempotencyKey, idempotencyKeyKeywords } from './idempotency-key.ts'
export {
  type InstanceList,
  type InstanceRole,
  type InstanceState,
  type InstanceStatus,
  type InstanceTotals,
  instanceIdSchema,
  instanceListSchema,
  instanceRoles,
  instanceStates,
  instanceStatusSchema,
  instanceTotalsSchema,
  MAX_PRODUCER_TASKS,
  type ProducedTask,
  producedTaskSchema,
} from './instance.ts'
export { checkInstanceId, instanceIdKeywords } from './instance-id.ts'
export {
  leaseIdSchema,
  type Refusal,
  type RefusalCode,
  refusalCodes,
  refusalDetail,
  refusalSchema,
} from './lease-reference.ts'
export {
  HEARTBEAT_SECONDS,
  LONGEST_SILENCE_SECONDS,
  MAX_BATCH,
  MAX_KEPT_REASON_LENGTH,
  MAX_LEASES_PER_REQUEST,
  MAX_PAGE_LENGTH,
  MAX_RETRY_AFTER_SECONDS,
  MAX_WAIT_SECONDS,
} from './limits.ts'
export { objectFaults } from './object-faults.ts'
export {
  explainPartitionName,
  type ParsedPartitionName,
  parsePartitionName,
  partitionName,
} from './partition-name.ts'
export { type Preferences, parsePrefer } from './preferences.ts'
export {
  type Conflict,
  conflictSchema,
  listedViolations,
  PROBLEM_MEDIA_TYPE,
  type Problem,
  type ProblemCode,
  type ProblemExtra,
  problem,
  problemSchema,
  problemType,
} from './problem.ts'
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
  type Outcome,
  outcomes,
  type SettleAnswer,
  type Settlement,
  settleAnswerSchema,
  settlementSchema,
  settleRequestSchema,
} from './settle.ts'
export { quoted } from './shown-value.ts'
export {
  type IndexRanges,
  indexRangesSchema,
  type LevelView,
  levelViewSchema,
  MAX_LISTED_GAPS,
  MAX_LISTED_LEVELS,
  MAX_LISTED_MISMATCHES,
  MAX_LISTED_TABLES,
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
  MAX_RETRIED_BY_NAME,
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
  type PartitionState,
  partitionStates,
  type StateCounts,
  stateCountsSchema,
  type TaskState,
  taskStates,
} from './task-state.ts'
export { type CheckFailure, MAX_LISTED_VIOLATIONS, type Violation, violationSchema } from './violation.ts'
