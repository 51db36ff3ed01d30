import { type Problem, type ProblemCode, problem } from '@baton/protocol'
import { NEARLY_FULL } from '../../handoff/hand-off.ts'
import { type Access, accessRule } from '../admission/access.ts'
import { admissionProblems, HOST_REFUSED } from '../admission/admission.ts'
import { refusedOpenWork } from '../admission/tokens.ts'
import { ARRIVED_TOO_LATE, HEADERS_TOO_LARGE } from '../answers/client-errors.ts'
import { callBackTooLarge, TYPE_NOT_JSON, UNEXPECTED } from '../answers/problems.ts'
import { TOO_MUCH_RECEIVED } from '../bodies/arriving-body.ts'
import { tooManyRequests } from '../budget/budget.ts'

/** An example of each problem. */
export const problemExamples: Readonly<Record<ProblemCode, Problem>> = {
  body_not_json: problem('body_not_json', 'the body is not JSON: it is incomplete'),
  bad_request: problem('bad_request', 'the path is not validly percent-encoded UTF-8'),
  unsupported_media_type: problem('unsupported_media_type', TYPE_NOT_JSON),
  body_too_large: problem('body_too_large', callBackTooLarge(16 * 2 ** 20)),
  contract_violation: problem('contract_violation', 'the array violates the contract; see errors', {
    errors: [
      {
        pointer: '/3/record_count',
        detail: 'record_count must be a non-negative integer, got the string "5"',
      },
    ],
  }),
  parameter_invalid: problem(
    'parameter_invalid',
    'the query parameter limit must be an integer from 1 to 1000',
  ),
  partition_conflict: problem(
    'partition_conflict',
    '1 partition is already stored with different content; nothing of the array was stored',
    {
      conflicts: [
        {
          pointer: '/4',
          partition_name: 'orders-2026-03-0-7',
          detail: 'record_count is 120 in the request and 100 in the stored descriptor',
        },
      ],
    },
  ),
  partition_unknown: problem(
    'partition_unknown',
    'the task does not have all of these partitions; nothing was changed',
    {
      errors: [{ pointer: '/partitions/1', detail: 'the task does not have this partition' }],
    },
  ),
  task_cancelled: problem(
    'task_cancelled',
    'the task is cancelled and accepts no new partitions, seal or settings',
  ),
  task_sealed: problem('task_sealed', 'the task is sealed, and the array contains new partitions'),
  task_finished: problem('task_finished', 'every partition of the task is done: pause has no effect'),
  task_purged: problem('task_purged', 'retention deleted the partitions of the task'),
  record_total_too_large: problem(
    'record_total_too_large',
    'with this array, the record total of the task would exceed 2^53 - 1',
  ),
  too_many_levels: problem(
    'too_many_levels',
    'with this array, the task would have more than 10000 levels with unfinished partitions',
  ),
  too_many_lanes: problem(
    'too_many_lanes',
    'the service has 200000 lanes, as many as --max-lanes allows; nothing was stored. Most are of the tasks "orders-2026-03" (9000), "orders-2026-02" (7000), "sales-2026" (52)',
  ),
  open_work_limited: problem(
    'open_work_limited',
    refusedOpenWork({ kind: 'owner_limited', limit: 'openTasks', most: 1000, used: 1000 }).detail,
  ),
  task_unknown: problem('task_unknown', 'no task "orders-2026-30" was called back'),
  subscription_unknown: problem('subscription_unknown', 'no subscription has this id'),
  delivery_unknown: problem(
    'delivery_unknown',
    'the subscription has no delivery of this event, or retention deleted it',
  ),
  too_many_subscriptions: problem(
    'too_many_subscriptions',
    'the service already has 100 subscriptions; remove one',
  ),
  subscription_in_file: problem(
    'subscription_in_file',
    'the subscription is defined in the subscriptions file as "pipeline"; change it there',
  ),
  instance_unknown: problem('instance_unknown', 'no instance has this name'),
  table_unknown: problem('table_unknown', 'no table "analytics.order_result" has open work or settings'),
  route_unknown: problem('route_unknown', 'there is no route with this path'),
  method_not_allowed: problem('method_not_allowed', 'this route supports GET, HEAD'),
  cross_site_refused: problem(
    'cross_site_refused',
    'the request comes from a page of another site (Sec-Fetch-Site)',
  ),
  host_refused: problem('host_refused', HOST_REFUSED),
  token_missing: problem('token_missing', 'send a token of this service: Authorization: Bearer <token>'),
  token_unknown: problem('token_unknown', 'the service does not know this token'),
  token_refused: problem(
    'token_refused',
    'the roles of the token do not allow this; it requires the role operator',
  ),
  token_limited: problem('token_limited', 'the token is limited to tasks whose id begins with "sales-"'),
  request_timeout: problem('request_timeout', ARRIVED_TOO_LATE),
  headers_too_large: problem('headers_too_large', HEADERS_TOO_LARGE),
  store_unavailable: problem(
    'store_unavailable',
    'reading or writing the data file failed; nothing of this request was stored; send it again after the problem is fixed',
  ),
  store_full: problem('store_full', NEARLY_FULL),
  shutting_down: problem(
    'shutting_down',
    'this node finishes the requests in progress and accepts no new ones',
  ),
  overloaded: problem('overloaded', TOO_MUCH_RECEIVED),
  rate_limited: problem('rate_limited', tooManyRequests(50, 1).detail),
  internal: problem('internal', UNEXPECTED, {
    instance: 'urn:uuid:4f1d7c2e-8f4e-4c58-9a55-0f7f4a2d4b11',
  }),
}

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

/** Operations that work without the store. */
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

/** All problems of an operation, its specific ones first. */
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
