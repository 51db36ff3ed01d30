import type { ProblemCode } from '@baton/protocol'
import { type Access, admissionProblems, hasEffect } from '../admission/admission.ts'

/** What decides about the problems of an operation, besides what it does. */
export interface OperationTraits {
  readonly access: Access
  readonly takesBody: boolean
}

/** Neither the routing nor the framing of a request knows which operation it is for. */
const anywhere: readonly ProblemCode[] = [
  'bad_request',
  'route_unknown',
  'method_not_allowed',
  'request_timeout',
  'headers_too_large',
  'internal',
]
const withBody: readonly ProblemCode[] = [
  'body_not_json',
  'unsupported_media_type',
  'body_too_large',
  'contract_violation',
]

/** They answer whatever became of the store. */
const withoutStore: ReadonlySet<string> = new Set(['livez', 'metrics', 'followEvents', 'listAudit'])

const ofTask: readonly ProblemCode[] = ['task_unknown', 'parameter_invalid']

const own: Readonly<Record<string, readonly ProblemCode[]>> = {
  callBack: [
    'parameter_invalid',
    'partition_conflict',
    'task_cancelled',
    'task_sealed',
    'record_total_too_large',
  ],
  pull: ['parameter_invalid', 'token_limited'],
  settle: ['parameter_invalid', 'token_limited'],
  renew: ['parameter_invalid'],
  instanceStatus: ['instance_unknown', 'parameter_invalid'],
  listInstances: ['parameter_invalid'],
  releaseInstance: ['instance_unknown', 'parameter_invalid'],
  listTasks: ['parameter_invalid'],
  viewTask: ofTask,
  listPartitions: ofTask,
  exportManifest: [...ofTask, 'task_purged'],
  pause: [...ofTask, 'task_cancelled', 'task_finished'],
  resume: [...ofTask, 'task_cancelled'],
  cancel: [...ofTask, 'task_finished'],
  skipParked: [...ofTask, 'task_cancelled', 'task_finished'],
  retry: [...ofTask, 'task_cancelled', 'task_sealed', 'task_purged', 'partition_unknown'],
  seal: [...ofTask, 'task_cancelled'],
  levelBarrier: [...ofTask, 'task_cancelled'],
  settings: ['task_cancelled', 'parameter_invalid'],
  subscribe: ['too_many_subscriptions'],
  unsubscribe: ['subscription_unknown'],
  rotateSecret: ['subscription_unknown'],
  enableSubscription: ['subscription_unknown'],
  listDeliveries: ['subscription_unknown', 'parameter_invalid'],
  redeliver: ['subscription_unknown', 'delivery_unknown'],
  readEvents: ['subscription_unknown', 'parameter_invalid'],
  followEvents: ['parameter_invalid', 'shutting_down'],
  metrics: ['parameter_invalid'],
  listAudit: ['parameter_invalid'],
  readyz: ['shutting_down', 'store_full'],
}

/** What an operation can be refused with, its own reasons first. */
export function problemsOf(
  operationId: string,
  { access, takesBody }: OperationTraits,
): readonly ProblemCode[] {
  return [
    ...(own[operationId] ?? []),
    ...(takesBody ? withBody : []),
    ...(hasEffect(access) ? (['store_full'] as const) : []),
    ...(withoutStore.has(operationId) ? [] : (['store_unavailable'] as const)),
    ...admissionProblems(access),
    ...anywhere,
  ]
}
