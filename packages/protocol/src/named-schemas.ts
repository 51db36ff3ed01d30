import type { TSchema } from 'typebox'
import { attemptSchema, failureSchema } from './attempt.ts'
import { attemptOutcomes, failureOutcomes } from './attempt-outcome.ts'
import { auditEntrySchema, auditListSchema } from './audit.ts'
import { callBackAnswerSchema } from './call-back.ts'
import { descriptorSchema } from './descriptor.ts'
import { parkedEventSchema } from './events.ts'
import {
  instanceListSchema,
  instanceStatusSchema,
  instanceTotalsSchema,
  producedTaskSchema,
  releaseAnswerSchema,
} from './instance.ts'
import { instanceRoles, instanceStates } from './instance-state.ts'
import { refusalSchema } from './lease-reference.ts'
import { outcomes } from './outcome.ts'
import { problemCodes } from './problem-codes.ts'
import { conflictSchema, problemSchema } from './problem-schema.ts'
import { leaseSchema, pullAnswerSchema, pulledPartitionSchema } from './pull.ts'
import { refusalCodes } from './refusal-codes.ts'
import { renewAnswerSchema, renewedLeaseSchema } from './renew.ts'
import { oneOf } from './schema-parts.ts'
import { settleAnswerSchema, settlementSchema } from './settle.ts'
import { stateCountsSchema } from './state-counts.ts'
import {
  cloudEventSchema,
  deliveryListSchema,
  deliverySchema,
  eventPageSchema,
  rotateSecretRequestSchema,
  subscribeRequestSchema,
  subscriptionListSchema,
  subscriptionSchema,
  subscriptionSecretSchema,
  subscriptionStatusSchema,
  unsubscribeAnswerSchema,
} from './subscription.ts'
import { DEFAULT_TABLE_FIELD } from './table-field.ts'
import {
  indexRangesSchema,
  levelViewSchema,
  reportedRecordsSchema,
  taskListSchema,
  taskSummarySchema,
  taskViewSchema,
  waitingForSchema,
} from './task.ts'
import {
  controlAnswerSchema,
  levelBarrierRequestSchema,
  retryRequestSchema,
  sealRequestSchema,
} from './task-control.ts'
import { manifestLineSchema, partitionListSchema, partitionRowSchema } from './task-partitions.ts'
import { taskSettingsAnswerSchema, taskSettingsRequestSchema, taskSettingsSchema } from './task-settings.ts'
import { partitionStates, taskStates } from './task-state.ts'
import { attemptSecondsSchema, stragglerSchema } from './timing.ts'
import { totalsSchema } from './totals.ts'
import { violationSchema } from './violation-schema.ts'
import { etaReasons } from './waits-for.ts'

/** What is on the wire by the names of its types, for documents that call it so and describe it once. */
export function namedSchemas(tableField: string = DEFAULT_TABLE_FIELD): Readonly<Record<string, TSchema>> {
  return {
    PartitionDescriptor: descriptorSchema(tableField),
    CallBackAnswer: callBackAnswerSchema,
    Lease: leaseSchema,
    PulledPartition: pulledPartitionSchema(tableField),
    PullAnswer: pullAnswerSchema(tableField),
    Settlement: settlementSchema,
    SettleAnswer: settleAnswerSchema(tableField),
    RenewedLease: renewedLeaseSchema,
    RenewAnswer: renewAnswerSchema,
    Refusal: refusalSchema,
    StateCounts: stateCountsSchema,
    TaskSummary: taskSummarySchema,
    TaskList: taskListSchema,
    TaskView: taskViewSchema,
    TaskSettings: taskSettingsSchema,
    TaskSettingsRequest: taskSettingsRequestSchema,
    TaskSettingsAnswer: taskSettingsAnswerSchema,
    LevelView: levelViewSchema,
    IndexRanges: indexRangesSchema,
    WaitingFor: waitingForSchema,
    ReportedRecords: reportedRecordsSchema,
    Totals: totalsSchema,
    PartitionRow: partitionRowSchema(tableField),
    PartitionList: partitionListSchema(tableField),
    ManifestLine: manifestLineSchema(tableField),
    Attempt: attemptSchema,
    Failure: failureSchema,
    AttemptSeconds: attemptSecondsSchema,
    Straggler: stragglerSchema,
    RetryRequest: retryRequestSchema,
    SealRequest: sealRequestSchema,
    LevelBarrierRequest: levelBarrierRequestSchema,
    ControlAnswer: controlAnswerSchema,
    InstanceStatus: instanceStatusSchema,
    InstanceTotals: instanceTotalsSchema,
    InstanceList: instanceListSchema,
    ReleaseAnswer: releaseAnswerSchema,
    ProducedTask: producedTaskSchema,
    AuditEntry: auditEntrySchema,
    AuditList: auditListSchema,
    ParkedEvent: parkedEventSchema,
    SubscribeRequest: subscribeRequestSchema,
    RotateSecretRequest: rotateSecretRequestSchema,
    Subscription: subscriptionSchema,
    SubscriptionSecret: subscriptionSecretSchema,
    SubscriptionStatus: subscriptionStatusSchema,
    SubscriptionList: subscriptionListSchema,
    UnsubscribeAnswer: unsubscribeAnswerSchema,
    Delivery: deliverySchema,
    DeliveryList: deliveryListSchema,
    CloudEvent: cloudEventSchema,
    EventPage: eventPageSchema,
    Problem: problemSchema,
    Violation: violationSchema,
    Conflict: conflictSchema,
    TaskState: oneOf(taskStates),
    PartitionState: oneOf(partitionStates),
    Outcome: oneOf(outcomes),
    AttemptOutcome: oneOf(attemptOutcomes),
    FailureOutcome: oneOf(failureOutcomes),
    EtaReason: oneOf(etaReasons),
    InstanceRole: oneOf(instanceRoles),
    InstanceState: oneOf(instanceStates),
    RefusalCode: oneOf(refusalCodes),
    ProblemCode: oneOf(problemCodes),
  }
}
