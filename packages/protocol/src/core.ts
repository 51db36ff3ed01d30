// The part of the protocol that works without schemas: states, limits and handwritten checks. Clients import
// it so that they do not load the schema library at every start. The rest of the protocol needs the schema
// library.

export { checkChosen, chosenKeywords } from './chosen.ts'
export type { ProblemCode } from './error-codes.ts'
export {
  type ErrorCode,
  type ErrorCodeEntry,
  errorCodes,
  type RefusalCode,
  refusalCodes,
  refusalDetail,
} from './error-codes.ts'
export { InexactNumber, parseExactJson } from './exact-json.ts'
export { didYouMean, objectFaults } from './field-faults.ts'
export {
  checkIdempotencyKey,
  checkInstanceId,
  idempotencyKeyKeywords,
  instanceIdKeywords,
} from './identifiers.ts'
export {
  DEFAULT_TABLE_FIELD,
  HEARTBEAT_SECONDS,
  LONGEST_SILENCE_SECONDS,
  MAX_BATCH,
  MAX_CHOSEN,
  MAX_COUNTED_DELIVERIES,
  MAX_EXTRA_FIELDS_BYTES,
  MAX_EXTRA_FIELDS_DEPTH,
  MAX_KEPT_REASON_LENGTH,
  MAX_LEASES_PER_REQUEST,
  MAX_LEVELS_PER_CALL_BACK,
  MAX_LISTED_ATTEMPTS,
  MAX_LISTED_FAILURES,
  MAX_LISTED_GAPS,
  MAX_LISTED_LEVELS,
  MAX_LISTED_MISMATCHES,
  MAX_LISTED_STRAGGLERS,
  MAX_LISTED_TABLES,
  MAX_LISTED_VIOLATIONS,
  MAX_PAGE_LENGTH,
  MAX_PARTITION_NAME_LENGTH,
  MAX_PRODUCER_TASKS,
  MAX_RETRIED_BY_NAME,
  MAX_RETRY_AFTER_SECONDS,
  MAX_SCALE_TARGET_SECONDS,
  MAX_TABLE_NAME_LENGTH,
  MAX_TASK_ID_LENGTH,
  MAX_WAIT_SECONDS,
} from './limits.ts'
export {
  explainPartitionName,
  type ParsedPartitionName,
  parsePartitionName,
  partitionName,
} from './partition-name.ts'
export { type Preferences, parsePrefer, readPreference } from './preferences.ts'
export { listedViolations, PROBLEM_MEDIA_TYPE, type ProblemExtra, problem, problemType } from './problem.ts'
export { type ScaleLimit, type ScaleReason, scaleLimits, scaleReasons } from './scale-words.ts'
export {
  readTaskSettings,
  type SettingName,
  settingKeywords,
  settingNames,
  settingWord,
} from './setting-keywords.ts'
export {
  type AttemptOutcome,
  attemptOutcomes,
  type DeliveryState,
  deliveryStates,
  type EtaReason,
  type EventName,
  etaReasons,
  eventNames,
  type FailureOutcome,
  failureOutcomes,
  type InstanceRole,
  type InstanceState,
  instanceRoles,
  instanceStates,
  isUnfinishedState,
  type Outcome,
  outcomes,
  type PartitionState,
  partitionStates,
  percentOf,
  type SubscriptionState,
  subscriptionStates,
  type TaskState,
  taskStates,
  type UnfinishedTaskState,
  unfinishedTaskStates,
  type WebhookEventType,
  webhookEventTypes,
} from './states.ts'
export { portablePattern } from './text-form.ts'
export {
  MAX_THROUGHPUT_POINTS,
  MINUTES_KEPT_MILLIS,
  STEP_MILLIS,
  THROUGHPUT_LEVELS,
  type ThroughputStep,
  throughputSteps,
} from './throughput-step.ts'
export { readTraceparent } from './traceparent.ts'
export { type UnknownFields, unknownFieldRules } from './unknown-fields.ts'
export type { CheckFailure } from './violation.ts'
export { quoted, ViolationList } from './violation.ts'
