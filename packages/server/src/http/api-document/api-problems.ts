import { errorCodes, type Problem, type ProblemCode, problem } from '@baton/protocol'
import { type Access, accessRule } from '../admission/access.ts'
import { admissionProblems } from '../admission/admission.ts'

/** An example of each problem: codes without a status are only in the answers of settle and renew. */
export const problemExamples: Readonly<Record<string, Problem>> = Object.fromEntries(
  Object.entries(errorCodes).flatMap(([code, { status, meaning }]) =>
    status === null ? [] : [[code, problem(code as ProblemCode, meaning)]],
  ),
)

/** Properties of an operation that determine its problems, in addition to its id. */
interface OperationTraits {
  readonly access: Access
  readonly takesBody: boolean
}

/** Problems of routing and HTTP parsing, which can occur for every operation. */
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

const withoutStore: ReadonlySet<string> = new Set(['livez', 'metrics', 'followEvents', 'listNodeAudit'])

const ofTask: readonly ProblemCode[] = ['task_unknown']

const own: Readonly<Record<string, readonly ProblemCode[]>> = {
  callBack: [
    'partition_conflict',
    'task_cancelled',
    'task_sealed',
    'record_total_too_large',
    'too_many_levels',
    'too_many_lanes',
    'open_work_limited',
  ],
  pull: ['token_limited'],
  settle: ['token_limited'],
  instanceStatus: ['instance_unknown'],
  releaseInstance: ['instance_unknown'],
  viewTable: ['table_unknown'],
  releasePartition: ['task_unknown', 'partition_unknown'],
  listInstanceLeases: ['instance_unknown'],
  listInstanceAttempts: ['instance_unknown'],
  pauseInstance: ['instance_unknown'],
  resumeInstance: ['instance_unknown'],
  viewScale: ['token_limited'],
  viewTask: ofTask,
  listPartitions: ofTask,
  viewThroughput: ofTask,
  viewFeed: ofTask,
  viewGrid: ofTask,
  exportManifest: [...ofTask, 'task_purged'],
  pause: [...ofTask, 'task_cancelled', 'task_finished'],
  resume: [...ofTask, 'task_cancelled'],
  cancel: [...ofTask, 'task_finished'],
  skipParked: [...ofTask, 'task_cancelled', 'task_finished'],
  retry: [...ofTask, 'task_cancelled', 'task_sealed', 'task_purged', 'partition_unknown', 'too_many_lanes'],
  seal: [...ofTask, 'task_cancelled'],
  owner: [...ofTask, 'task_cancelled'],
  levelBarrier: [...ofTask, 'task_cancelled'],
  settings: ofTask,
  changeSettings: ['task_cancelled'],
  subscribe: ['too_many_subscriptions'],
  unsubscribe: ['subscription_unknown', 'subscription_in_file'],
  rotateSecret: ['subscription_unknown', 'subscription_in_file'],
  enableSubscription: ['subscription_unknown'],
  listDeliveries: ['subscription_unknown'],
  redeliver: ['subscription_unknown', 'delivery_unknown'],
  readEvents: ['subscription_unknown'],
  followEvents: ['shutting_down'],
  readyz: ['shutting_down', 'store_full'],
}

export function problemsOf(
  operationId: string,
  { access, takesBody }: OperationTraits,
): readonly ProblemCode[] {
  const changes = (accessRule(access)?.effect ?? 'read') !== 'read'
  return [
    ...(own[operationId] ?? []),
    ...(access === 'probe' ? [] : (['parameter_invalid'] as const)),
    ...(takesBody ? withBody : []),
    ...(changes ? (['store_full'] as const) : []),
    ...(withoutStore.has(operationId) ? [] : (['store_unavailable'] as const)),
    ...admissionProblems(access),
    ...anywhere,
  ]
}
