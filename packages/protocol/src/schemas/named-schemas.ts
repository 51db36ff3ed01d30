import type { TSchema } from 'typebox'
import { problemCodes, refusalCodes } from '../error-codes.ts'
import { DEFAULT_TABLE_FIELD } from '../limits.ts'
import { scaleSchema } from '../scale.ts'
import { scaleLimits, scaleReasons } from '../scale-words.ts'
import {
  attemptOutcomes,
  etaReasons,
  failureOutcomes,
  instanceRoles,
  instanceStates,
  outcomes,
  partitionStates,
  taskStates,
} from '../states.ts'
import { throughputPointSchema, throughputSchema } from '../throughput.ts'
import { throughputSteps } from '../throughput-step.ts'
import { attemptSchema, attemptSecondsSchema, failureSchema, stragglerSchema } from './attempt.ts'
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
import { refusalSchema } from './lease-reference.ts'
import { conflictSchema, problemSchema, violationSchema } from './problem.ts'
import { leaseSchema, pullAnswerSchema, pulledPartitionSchema } from './pull.ts'
import { renewAnswerSchema, renewedLeaseSchema } from './renew.ts'
import { oneOf } from './schema-parts.ts'
import { settleAnswerSchema, settlementSchema } from './settle.ts'
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
import {
  indexRangesSchema,
  levelViewSchema,
  reportedRecordsSchema,
  stateCountsSchema,
  taskListSchema,
  taskSummarySchema,
  taskViewSchema,
  totalsSchema,
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

/** The schemas by type name, for API documents that define each schema once and reference it by name. */
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
    Scale: scaleSchema,
    PartitionRow: partitionRowSchema(tableField),
    PartitionList: partitionListSchema(tableField),
    ManifestLine: manifestLineSchema(tableField),
    Attempt: attemptSchema,
    Failure: failureSchema,
    AttemptSeconds: attemptSecondsSchema,
    Straggler: stragglerSchema,
    Throughput: throughputSchema,
    ThroughputPoint: throughputPointSchema,
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
    ScaleReason: oneOf(scaleReasons),
    ScaleLimit: oneOf(scaleLimits),
    ThroughputStep: oneOf(throughputSteps),
    InstanceRole: oneOf(instanceRoles),
    InstanceState: oneOf(instanceStates),
    RefusalCode: oneOf(refusalCodes),
    ProblemCode: oneOf(problemCodes),
  }
}
