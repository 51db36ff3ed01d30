// What of the protocol needs no schemas when it runs: its words, its numbers, and the checks that are written by hand.
// The library that makes schemas is 537 files and 0.3 s of a processor at every start, which those are spared who only
// keep to the protocol. Everything that this lacks is a schema or needs one.

export {
  MAX_COUNTED_DELIVERIES,
  MAX_LISTED_ATTEMPTS,
  MAX_LISTED_FAILURES,
  MAX_LISTED_GAPS,
  MAX_LISTED_LEVELS,
  MAX_LISTED_MISMATCHES,
  MAX_LISTED_STRAGGLERS,
  MAX_LISTED_TABLES,
  MAX_LISTED_VIOLATIONS,
  MAX_PRODUCER_TASKS,
} from './answer-caps.ts'
export {
  type AttemptOutcome,
  attemptOutcomes,
  type FailureOutcome,
  failureOutcomes,
} from './attempt-outcome.ts'
export { checkChosen, chosenKeywords } from './chosen.ts'
export { didYouMean } from './did-you-mean.ts'
export { type ErrorCode, type ErrorCodeEntry, errorCodes } from './error-codes.ts'
export { type EventName, eventNames } from './event-names.ts'
export { InexactNumber, parseExactJson } from './exact-json.ts'
export { checkIdempotencyKey, idempotencyKeyKeywords } from './idempotency-key.ts'
export { checkInstanceId, instanceIdKeywords } from './instance-id.ts'
export { type InstanceRole, type InstanceState, instanceRoles, instanceStates } from './instance-state.ts'
export {
  HEARTBEAT_SECONDS,
  LONGEST_SILENCE_SECONDS,
  MAX_BATCH,
  MAX_CHOSEN,
  MAX_KEPT_REASON_LENGTH,
  MAX_LEASES_PER_REQUEST,
  MAX_LEVELS_PER_CALL_BACK,
  MAX_PAGE_LENGTH,
  MAX_PARTITION_NAME_LENGTH,
  MAX_RETRIED_BY_NAME,
  MAX_RETRY_AFTER_SECONDS,
  MAX_TABLE_NAME_LENGTH,
  MAX_TASK_ID_LENGTH,
  MAX_WAIT_SECONDS,
} from './limits.ts'
export { objectFaults } from './object-faults.ts'
export { type Outcome, outcomes } from './outcome.ts'
export {
  explainPartitionName,
  type ParsedPartitionName,
  parsePartitionName,
  partitionName,
} from './partition-name.ts'
export { percentOf } from './percent.ts'
export { type Preferences, parsePrefer, readPreference } from './preferences.ts'
export { listedViolations, PROBLEM_MEDIA_TYPE, type ProblemExtra, problem, problemType } from './problem.ts'
export type { ProblemCode } from './problem-codes.ts'
export { type RefusalCode, refusalCodes, refusalDetail } from './refusal-codes.ts'
export {
  readTaskSettings,
  type SettingName,
  settingKeywords,
  settingNames,
  settingWord,
} from './setting-keywords.ts'
export { quoted } from './shown-value.ts'
export { DEFAULT_TABLE_FIELD } from './table-field.ts'
export {
  isUnfinishedState,
  type PartitionState,
  partitionStates,
  type TaskState,
  taskStates,
  type UnfinishedTaskState,
  unfinishedTaskStates,
} from './task-state.ts'
export { portablePattern } from './text-form.ts'
export type { CheckFailure } from './violation.ts'
export { ViolationList } from './violation.ts'
export { type EtaReason, etaReasons } from './waits-for.ts'
export {
  type DeliveryState,
  deliveryStates,
  type SubscriptionState,
  subscriptionStates,
  type WebhookEventType,
  webhookEventTypes,
} from './webhook-events.ts'
