/// <reference lib="esnext.disposable" preserve="true" />
export type {
  Attempt,
  AttemptSeconds,
  AuditEntry,
  AuditList,
  CallBackAnswer,
  CloudEvent,
  Conflict,
  ControlAnswer,
  Delivery,
  DeliveryList,
  DeliveryState,
  EventPage,
  Failure,
  InstanceList,
  InstanceStatus,
  Lease,
  LevelView,
  ManifestLine,
  Outcome,
  PartitionDescriptor,
  PartitionList,
  PartitionRow,
  PartitionState,
  Problem,
  ProblemCode,
  PulledPartition,
  Refusal,
  RefusalCode,
  ReleaseAnswer,
  RenewAnswer,
  RetryRequest,
  RotateSecretRequest,
  Scale,
  SealRequest,
  SettleAnswer,
  Settlement,
  StateCounts,
  Straggler,
  StreamEvent,
  SubscribeRequest,
  Subscription,
  SubscriptionSecret,
  SubscriptionStatus,
  TaskList,
  TaskSettings,
  TaskSettingsAnswer,
  TaskSettingsRequest,
  TaskState,
  TaskSummary,
  TaskView,
  Throughput,
  ThroughputPoint,
  ThroughputStep,
  Totals,
  UnsubscribeAnswer,
  Violation,
  WebhookEventType,
} from '@baton/protocol'
export { CallBackCheck, namingPositions } from './call-back-check.ts'
export type { CallBackCallOptions, CallBackReceipt } from './call-back-sending.ts'
export type {
  CallOptions,
  Chosen,
  ManifestOptions,
  PageOptions,
  PartitionsOptions,
  PullChoice,
  Pulled,
  PullOptions,
  ScaleOptions,
  SealableCallOptions,
  SettleOptions,
  TasksOptions,
  ThroughputOptions,
} from './call-options.ts'
export type { ServiceAddress } from './client.ts'
export { BatonClient } from './client.ts'
export type { BatonClientOptions, RequestReport } from './client-options.ts'
export {
  BatonError,
  type CallBackProgress,
  ConflictError,
  ContractError,
  LeaseLostError,
  ProblemError,
  UnexpectedAnswerError,
  UnreachableError,
  UnsendableError,
  WorkerStoppedError,
} from './errors.ts'
export { readEvents } from './event-stream.ts'
export {
  type DoneOutcome,
  Failed,
  type FailedOutcome,
  type HandlingOutcome,
  Released,
  type ReleasedOutcome,
} from './outcome.ts'
export type { FailedTry } from './persistence.ts'
export { Producer, type ProducerOptions } from './producer.ts'
export { HeldPartition, pullEach } from './pull-each.ts'
export type { EventPageOptions, Subscriptions } from './subscriptions.ts'
export { TableField } from './table-field.ts'
export { type StopOptions, Worker } from './worker.ts'
export type { WorkerEvent, WorkerEventListener } from './worker-events.ts'
export type { Handler, HandlingContext, WorkerOptions } from './worker-options.ts'
