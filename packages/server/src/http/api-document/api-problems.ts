import { type Problem, type ProblemCode, problem } from '@baton/protocol'

/** An occurrence of each problem, as a client would meet it. */
export const problemExamples: Readonly<Record<ProblemCode, Problem>> = {
  body_not_json: problem('body_not_json', 'the body ends in the middle of a string'),
  bad_request: problem('bad_request', 'the path is not validly percent-encoded UTF-8'),
  unsupported_media_type: problem(
    'unsupported_media_type',
    'the body must be sent with Content-Type: application/json',
  ),
  body_too_large: problem('body_too_large', 'the body is larger than the 32 MB that are accepted here'),
  contract_violation: problem('contract_violation', 'the body breaks the contract in 1 place', {
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
  partition_conflict: problem('partition_conflict', '1 partition is already known with other content', {
    conflicts: [
      {
        pointer: '/4',
        partition_name: 'orders-2026-03-0-7',
        detail: 'record_count is 120 here and 100 in what was accepted before',
      },
    ],
  }),
  partition_unknown: problem('partition_unknown', 'the task has no partition orders-2026-03-0-99'),
  task_cancelled: problem('task_cancelled', 'the task orders-2026-03 is cancelled'),
  task_sealed: problem('task_sealed', 'the task is sealed, and the array holds 1 new partition'),
  task_finished: problem('task_finished', 'every partition of the task is done'),
  task_purged: problem('task_purged', 'retention removed the partitions of the task'),
  record_total_too_large: problem('record_total_too_large', 'the records would add up to more than 2^53 - 1'),
  task_unknown: problem('task_unknown', 'no task orders-2026-30 was ever called back here'),
  instance_unknown: problem('instance_unknown', 'no instance of that name is known here'),
  route_unknown: problem('route_unknown', 'there is nothing at this path'),
  method_not_allowed: problem('method_not_allowed', 'this path takes GET, HEAD'),
  cross_site_refused: problem(
    'cross_site_refused',
    'the request comes from a page of another site (Sec-Fetch-Site)',
  ),
  host_refused: problem('host_refused', 'the Host header names neither this machine nor an allowed host'),
  token_missing: problem('token_missing', 'send a token of this service: Authorization: Bearer <token>'),
  token_unknown: problem('token_unknown', 'the token is not one of this service'),
  token_refused: problem('token_refused', "the token's roles do not cover this; it takes operator"),
  request_timeout: problem('request_timeout', 'the body was not complete in time'),
  headers_too_large: problem('headers_too_large', 'the headers are larger than 32 kB'),
  store_unavailable: problem('store_unavailable', 'the store cannot commit now; nothing was done by halves'),
  store_full: problem('store_full', 'the disk is nearly full; what was accepted can still be settled'),
  shutting_down: problem('shutting_down', 'this node finishes what it has and takes nothing new'),
  overloaded: problem('overloaded', 'more requests are waiting than this node can carry'),
  internal: problem('internal', 'something went wrong inside the service; its log has the details', {
    instance: 'urn:uuid:4f1d7c2e-8f4e-4c58-9a55-0f7f4a2d4b11',
  }),
}

const anywhere: readonly ProblemCode[] = [
  'bad_request',
  'host_refused',
  'token_missing',
  'token_unknown',
  'token_refused',
  'route_unknown',
  'method_not_allowed',
  'request_timeout',
  'headers_too_large',
  'store_unavailable',
  'internal',
]
const withBody: readonly ProblemCode[] = [
  'body_not_json',
  'unsupported_media_type',
  'body_too_large',
  'contract_violation',
  'cross_site_refused',
]
const ofTask: readonly ProblemCode[] = ['task_unknown', 'parameter_invalid']
const control: readonly ProblemCode[] = [
  ...ofTask,
  ...withBody,
  'task_cancelled',
  'task_sealed',
  'task_finished',
]

const own: Readonly<Record<string, readonly ProblemCode[]>> = {
  callBack: [
    ...withBody,
    'parameter_invalid',
    'partition_conflict',
    'task_cancelled',
    'task_sealed',
    'record_total_too_large',
    'store_full',
    'overloaded',
  ],
  pull: ['parameter_invalid', 'cross_site_refused', 'store_full'],
  settle: [...withBody, 'parameter_invalid', 'store_full'],
  renew: [...withBody, 'parameter_invalid', 'store_full'],
  instanceStatus: ['instance_unknown', 'parameter_invalid'],
  listInstances: ['parameter_invalid'],
  listTasks: ['parameter_invalid'],
  viewTask: ofTask,
  listPartitions: ofTask,
  exportManifest: [...ofTask, 'task_purged'],
  pause: control,
  resume: control,
  cancel: control,
  skipParked: control,
  retry: [...control, 'task_purged', 'partition_unknown'],
  seal: control,
  levelBarrier: control,
  followEvents: ['overloaded', 'shutting_down'],
  readyz: ['shutting_down'],
}

/** What an operation can be refused with, its own reasons first. */
export function problemsOf(operationId: string): readonly ProblemCode[] {
  return [...(own[operationId] ?? []), ...anywhere]
}
