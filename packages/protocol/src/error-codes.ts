/**
 * The definition of an error code. A null status means that the code appears only inside a `refused` list,
 * never as a whole answer.
 */
export interface ErrorCodeEntry {
  readonly status: number | null
  readonly title: string
  /** Whether the same request, unchanged, may succeed later. */
  readonly retryable: boolean
  readonly meaning: string
  readonly remedy: string
}

/** Every error code of the API. Codes are never renamed or reused. */
export const errorCodes = {
  body_not_json: {
    status: 400,
    title: 'The body is not JSON',
    retryable: false,
    meaning: 'The body is not valid JSON in UTF-8.',
    remedy: 'Send a complete JSON document, encoded as UTF-8.',
  },
  bad_request: {
    status: 400,
    title: 'Malformed request',
    retryable: false,
    meaning: 'The request is not valid HTTP, or its URL is not validly encoded.',
    remedy: 'Check the URL, the headers and the declared length of the body.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    retryable: false,
    meaning: 'The Content-Type is not JSON in UTF-8, or the Content-Encoding is not gzip.',
    remedy: 'Send Content-Type: application/json, and Content-Encoding: gzip or no Content-Encoding.',
  },
  body_too_large: {
    status: 413,
    title: 'The body is too large',
    retryable: false,
    meaning: 'The body is larger than the limit of the route, or has too many elements or values.',
    remedy: 'Send several smaller arrays. For call-backs, an operator can raise the limits.',
  },
  contract_violation: {
    status: 422,
    title: 'The body violates the contract',
    retryable: false,
    meaning: 'The body is JSON but does not conform to the contract. Nothing was stored.',
    remedy: 'Correct each value listed in `errors`, and send the whole body again.',
  },
  parameter_invalid: {
    status: 422,
    title: 'Invalid parameter',
    retryable: false,
    meaning:
      'A query parameter is unknown, or a parameter, path segment or header has a value that is not allowed.',
    remedy: 'Correct the named parameter.',
  },
  partition_conflict: {
    status: 409,
    title: 'A partition already exists with different content',
    retryable: false,
    meaning: 'At least one descriptor differs from the stored one. Nothing of the array was stored.',
    remedy: 'Send the same descriptor as in the first call-back, or use a new task id for a new computation.',
  },
  task_cancelled: {
    status: 409,
    title: 'The task is cancelled',
    retryable: false,
    meaning:
      'The task was cancelled. It accepts no new partitions and no control requests, and its leases can no longer be settled.',
    remedy: 'Stop working on the task; use a new task id to compute it again.',
  },
  task_sealed: {
    status: 409,
    title: 'The task is sealed',
    retryable: false,
    meaning:
      'The task is sealed: new partitions are refused, and a sealed task that is done is not reopened.',
    remedy:
      'Seal a task only after its last call-back. Use a new task id for late partitions or to run the task again.',
  },
  task_finished: {
    status: 409,
    title: 'The task is finished',
    retryable: false,
    meaning: 'Every partition of the task is done, so the control request has no effect.',
    remedy:
      'No action is needed. To run done partitions again, send `retry` with `"done": true`; if the task is sealed, use a new task id.',
  },
  task_purged: {
    status: 409,
    title: 'The partitions of the task were deleted',
    retryable: false,
    meaning: 'Retention deleted the partitions of the finished task. Only its summary is kept.',
    remedy: 'Call the partitions back under a new task id.',
  },
  subscription_unknown: {
    status: 404,
    title: 'Unknown subscription',
    retryable: false,
    meaning: 'No subscription has this id, or it was removed.',
    remedy: 'List the subscriptions, or subscribe again.',
  },
  delivery_unknown: {
    status: 404,
    title: 'Unknown delivery',
    retryable: false,
    meaning: 'The subscription has no delivery of this event, or retention deleted it.',
    remedy: 'List the deliveries of the subscription.',
  },
  too_many_subscriptions: {
    status: 409,
    title: 'Too many subscriptions',
    retryable: false,
    meaning: 'The service has reached its maximum number of subscriptions.',
    remedy: 'Remove a subscription that is no longer used.',
  },
  subscription_in_file: {
    status: 409,
    title: 'The subscription is defined in the subscriptions file',
    retryable: false,
    meaning: 'The subscription is defined in the subscriptions file of the service.',
    remedy: 'Change or remove the subscription in that file.',
  },
  partition_unknown: {
    status: 404,
    title: 'Unknown partition',
    retryable: false,
    meaning: 'The task does not have the level, or at least one of the partitions. Nothing was changed.',
    remedy: 'Compare the names listed in `errors` with the partitions of the task.',
  },
  record_total_too_large: {
    status: 409,
    title: 'The record total of the task is too large',
    retryable: false,
    meaning: 'With this array, the record total of the task would exceed 2^53 - 1.',
    remedy: 'Check the record counts. If they are correct, split the task.',
  },
  too_many_levels: {
    status: 422,
    title: 'The task has too many levels',
    retryable: false,
    meaning:
      'With this array, the task would have too many levels with unfinished partitions. Nothing was stored.',
    remedy: 'Use fewer levels: a level is a priority, not a number of the partition. Or split the task.',
  },
  task_unknown: {
    status: 404,
    title: 'Unknown task',
    retryable: false,
    meaning: 'No task with this id was called back.',
    remedy: 'Check the id and its URL encoding. A task exists after its first call-back.',
  },
  instance_unknown: {
    status: 404,
    title: 'Unknown instance',
    retryable: false,
    meaning: 'No instance has this name, or it was deleted after a week without a request.',
    remedy: 'Check the name. A client becomes an instance when it sends X-Instance-Id with a request.',
  },
  table_unknown: {
    status: 404,
    title: 'Unknown table',
    retryable: false,
    meaning: 'No compute table with this name has open work or settings.',
    remedy: 'Check the name and its URL encoding. GET /tables lists the tables.',
  },
  route_unknown: {
    status: 404,
    title: 'Unknown route',
    retryable: false,
    meaning: 'The service has no route with this path.',
    remedy: 'Check the path, including the base path of the service if it has one.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    retryable: false,
    meaning: 'The route does not support this method.',
    remedy: 'Use one of the methods in the Allow header.',
  },
  cross_site_refused: {
    status: 403,
    title: 'Cross-site request refused',
    retryable: false,
    meaning: 'A browser sent the request on behalf of another site, or to prefetch or navigate.',
    remedy: 'Call from a program, or from a page that the service itself serves.',
  },
  host_refused: {
    status: 421,
    title: 'Host not allowed',
    retryable: false,
    meaning: 'The Host header is neither a loopback name nor an allowed host.',
    remedy: 'Use a loopback name, or add the host to the allowed hosts of the service.',
  },
  token_missing: {
    status: 401,
    title: 'Token missing',
    retryable: false,
    meaning: 'The service requires a token, and the request has no valid Authorization header.',
    remedy: 'Send the header Authorization: Bearer with a token of this service.',
  },
  token_unknown: {
    status: 401,
    title: 'Unknown token',
    retryable: false,
    meaning: 'The service does not know this token.',
    remedy: 'Check that the token is complete and belongs to this service.',
  },
  token_refused: {
    status: 403,
    title: 'Token refused',
    retryable: false,
    meaning: 'The roles of the token do not allow this request.',
    remedy: 'Use a token with a role that allows the operation.',
  },
  token_limited: {
    status: 403,
    title: 'Outside the limits of the token',
    retryable: false,
    meaning: 'The role of the token is sufficient, but the token is limited to other tasks or tables.',
    remedy:
      'Use a token that is valid for the task and its tables, or ask an operator to change the limits of the token.',
  },
  request_timeout: {
    status: 408,
    title: 'The request took too long to arrive',
    retryable: true,
    meaning: 'The headers or the body did not arrive in time.',
    remedy: 'Send the request again. If this happens often, check the network connection.',
  },
  headers_too_large: {
    status: 431,
    title: 'The headers are too large',
    retryable: false,
    meaning: 'The request line and the headers together exceed the limit of the service.',
    remedy: 'Shorten the URL, cookies or other headers.',
  },
  store_unavailable: {
    status: 503,
    title: 'The store is unavailable',
    retryable: true,
    meaning:
      'The store could not be reached or could not commit. The request was carried out completely or not at all.',
    remedy: 'Try again after Retry-After. Repeating a call-back or a settlement is safe.',
  },
  store_full: {
    status: 503,
    title: 'The store has no free space',
    retryable: true,
    meaning: 'The disk of the store does not have enough free space for the request.',
    remedy: 'Free disk space; the service resumes automatically.',
  },
  too_many_lanes: {
    status: 503,
    title: 'The service has too many lanes',
    retryable: true,
    meaning:
      'The tasks have as many lanes (levels with unfinished partitions) as the service may keep in memory. Nothing was stored.',
    remedy:
      'Try again after Retry-After, when other work is done. An operator can cancel the tasks with most lanes, or raise --max-lanes.',
  },
  open_work_limited: {
    status: 429,
    title: 'The producer has too much open work',
    retryable: true,
    meaning:
      'The producer has as many open tasks or waiting partitions as its token allows. Nothing was stored.',
    remedy:
      'Try again after Retry-After, when some work is done. An operator can raise maxOpenTasks or maxWaitingPartitions in the tokens file.',
  },
  shutting_down: {
    status: 503,
    title: 'The service is shutting down',
    retryable: true,
    meaning: 'This node is shutting down: it hands out nothing more.',
    remedy: 'Try again on another node or after the restart.',
  },
  overloaded: {
    status: 503,
    title: 'The service is overloaded',
    retryable: true,
    meaning: 'The node is overloaded, or has reached its limit of connections, bodies or event streams.',
    remedy: 'Try again after Retry-After, with fewer concurrent requests.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    retryable: true,
    meaning:
      'The token (without tokens: the client address) exceeds the allowed number of requests per second.',
    remedy: 'Try again after Retry-After, and send fewer requests per second.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    retryable: true,
    meaning: 'An unexpected error occurred.',
    remedy: 'Try again. If it persists, search the log of the service for the value of `instance`.',
  },
  lease_unknown: {
    status: null,
    title: 'Unknown lease',
    retryable: false,
    meaning: 'No lease has this id, or it ended long ago and was deleted.',
    remedy: 'Check the id. If it is correct, stop working on the partition.',
  },
  lease_lost: {
    status: null,
    title: 'Lease lost',
    retryable: false,
    meaning:
      'The partition was handed out again, or an operator let it run again after it was done. To a renewal also: an operator revoked the lease.',
    remedy:
      'Stop working on the partition. If leases expire often, renew them earlier or set a longer lease.',
  },
  limit_reached: {
    status: null,
    title: 'Limit of leases reached',
    retryable: false,
    meaning: 'The lease expired, and its task or its compute table has as many leases as `maxLeases` allows.',
    remedy:
      'Stop working on the partition, or settle it as done if that is nearly finished. It will be handed out again.',
  },
  checkpoint_too_long: {
    status: null,
    title: 'Checkpoint too long',
    retryable: false,
    meaning: 'The checkpoint is longer than 4,096 bytes of UTF-8. Nothing of this lease was changed.',
    remedy: 'Send a shorter checkpoint, for example the place of a file that has the rest.',
  },
  lease_settled: {
    status: null,
    title: 'Lease already settled',
    retryable: false,
    meaning: 'The lease was already settled. The first outcome is kept.',
    remedy: 'Settle each lease once. Repeating the same outcome is safe.',
  },
} as const satisfies Record<string, ErrorCodeEntry>

export type ErrorCode = keyof typeof errorCodes

/** The codes that can be the answer to a request. The others appear inside a `refused` list. */
export type ProblemCode = {
  [C in ErrorCode]: (typeof errorCodes)[C]['status'] extends number ? C : never
}[ErrorCode]

export const problemCodes = (Object.keys(errorCodes) as ErrorCode[]).filter(
  (code): code is ProblemCode => errorCodes[code].status !== null,
)

export const refusalCodes = [
  'lease_unknown',
  'lease_lost',
  'lease_settled',
  'limit_reached',
  'checkpoint_too_long',
  'task_cancelled',
] as const
export type RefusalCode = (typeof refusalCodes)[number]

/** Explains to a person why a lease is refused. */
export function refusalDetail(code: RefusalCode): string {
  return `${errorCodes[code].meaning} ${errorCodes[code].remedy}`
}
