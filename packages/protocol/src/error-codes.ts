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
    meaning: 'The body could not be read as JSON in UTF-8.',
    remedy: 'Send a complete JSON document, encoded as UTF-8.',
  },
  bad_request: {
    status: 400,
    title: 'Malformed request',
    retryable: false,
    meaning: 'The request could not be read as HTTP, or its URL is not validly encoded.',
    remedy: 'Check the URL, the headers and the declared length of the body.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    retryable: false,
    meaning:
      'The body is declared as something else than JSON in UTF-8, or with a Content-Encoding other than gzip.',
    remedy: 'Send Content-Type: application/json, and Content-Encoding: gzip or none.',
  },
  body_too_large: {
    status: 413,
    title: 'The body is too large',
    retryable: false,
    meaning: 'The body is larger than this service accepts.',
    remedy: 'Send several smaller arrays; for call-backs the service can also be given a higher limit.',
  },
  contract_violation: {
    status: 422,
    title: 'The body breaks the contract',
    retryable: false,
    meaning: 'The body is JSON but not what the contract asks for; nothing of it was stored.',
    remedy: 'Correct each place that errors points to, and send the whole body again.',
  },
  parameter_invalid: {
    status: 422,
    title: 'Invalid parameter',
    retryable: false,
    meaning: 'A query parameter, path segment or header has a value that is not allowed.',
    remedy: 'Correct the parameter that the detail names.',
  },
  partition_conflict: {
    status: 409,
    title: 'A partition is already known with other content',
    retryable: false,
    meaning: 'At least one descriptor contradicts what was accepted before; nothing of the array was stored.',
    remedy: 'Send each partition as it was first called back, or use a new task id for a new computation.',
  },
  task_cancelled: {
    status: 409,
    title: 'The task is cancelled',
    retryable: false,
    meaning:
      'The task was cancelled: it takes no new partitions and no orders, and its leases can no longer be settled.',
    remedy: 'Stop working on the task; use a new task id to compute it again.',
  },
  task_sealed: {
    status: 409,
    title: 'The task is sealed',
    retryable: false,
    meaning:
      'It was declared that no further partitions would come: new ones are refused, and once it is done it stays so.',
    remedy: 'Seal only after the last call-back; use a new task id for what came late or has to run again.',
  },
  task_finished: {
    status: 409,
    title: 'The task is finished',
    retryable: false,
    meaning: 'Every partition of the task is done, so there is nothing that the order could act on.',
    remedy: 'Nothing has to be done; to run partitions again, retry them and say that done ones are meant.',
  },
  task_purged: {
    status: 409,
    title: 'The partitions of the task are gone',
    retryable: false,
    meaning: 'Retention removed the partitions of the finished task; only its summary is left.',
    remedy: 'Call the work back under a new task id.',
  },
  subscription_unknown: {
    status: 404,
    title: 'Unknown subscription',
    retryable: false,
    meaning: 'No subscription has that id, or it was removed.',
    remedy: 'List the subscriptions, or subscribe again.',
  },
  delivery_unknown: {
    status: 404,
    title: 'Unknown delivery',
    retryable: false,
    meaning: 'The subscription has no such event to deliver, or retention deleted it.',
    remedy: 'List the deliveries of the subscription.',
  },
  too_many_subscriptions: {
    status: 409,
    title: 'Too many subscriptions',
    retryable: false,
    meaning: 'There are as many subscriptions as the service can have.',
    remedy: 'Remove one that is no longer used.',
  },
  subscription_in_file: {
    status: 409,
    title: 'The subscription is in the subscriptions file',
    retryable: false,
    meaning: 'The subscription comes from the subscriptions file of the service.',
    remedy: 'Change or remove it in that file.',
  },
  partition_unknown: {
    status: 404,
    title: 'Unknown partition',
    retryable: false,
    meaning:
      'At least one of the named partitions, or the level, does not belong to the task; nothing was changed.',
    remedy: 'Check the names that errors points to against the partitions of the task.',
  },
  record_total_too_large: {
    status: 409,
    title: 'The record total of the task is too large',
    retryable: false,
    meaning: 'With this array the records of the task would add up to more than 2^53 - 1.',
    remedy: 'Check the record counts; split the task if they are right.',
  },
  task_unknown: {
    status: 404,
    title: 'Unknown task',
    retryable: false,
    meaning: 'No task of that id was ever called back here.',
    remedy: 'Check the id and its URL encoding; a task exists from its first call-back on.',
  },
  instance_unknown: {
    status: 404,
    title: 'Unknown instance',
    retryable: false,
    meaning: 'No instance of that name is known, or it has not been seen for so long that it was forgotten.',
    remedy: 'Check the name; clients are known once they send X-Instance-Id with a request.',
  },
  route_unknown: {
    status: 404,
    title: 'No such route',
    retryable: false,
    meaning: 'The service has nothing at that path.',
    remedy: 'Check the path, and the base path if the service is mounted under one.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    retryable: false,
    meaning: 'The path exists but does not take that method.',
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
    meaning: 'The Host header names neither this machine nor an allowed host.',
    remedy: 'Use a loopback name, or add the host to the allowed hosts of the service.',
  },
  token_missing: {
    status: 401,
    title: 'Token missing',
    retryable: false,
    meaning: 'The service asks for a token and the request carries none that can be read.',
    remedy: 'Send Authorization: Bearer with a token of this service.',
  },
  token_unknown: {
    status: 401,
    title: 'Unknown token',
    retryable: false,
    meaning: 'The token is not one of this service.',
    remedy: 'Check the token, and that it is meant for this service.',
  },
  token_refused: {
    status: 403,
    title: 'Token refused',
    retryable: false,
    meaning: 'The roles of the token do not cover this request.',
    remedy: 'Use a token whose role allows the operation.',
  },
  token_limited: {
    status: 403,
    title: 'Outside of what the token covers',
    retryable: false,
    meaning: 'The role of the token would do, but it is limited to other tasks or tables.',
    remedy: 'Use a token that covers the task and its tables, or have its limit changed.',
  },
  request_timeout: {
    status: 408,
    title: 'The request took too long to arrive',
    retryable: true,
    meaning: 'Headers or body were not complete in time.',
    remedy: 'Send the request again; check the connection if it happens often.',
  },
  headers_too_large: {
    status: 431,
    title: 'The headers are too large',
    retryable: false,
    meaning: 'The request line and headers together are larger than the service accepts.',
    remedy: 'Shorten the URL, cookies or other headers.',
  },
  store_unavailable: {
    status: 503,
    title: 'The store is unavailable',
    retryable: true,
    meaning: 'The store could not be reached or could not commit; nothing was done by halves.',
    remedy: 'Try again after Retry-After; repeating a call-back or a settlement is safe.',
  },
  store_full: {
    status: 503,
    title: 'The store has no room',
    retryable: true,
    meaning: 'There is too little room on the disk of the store for what the request would write.',
    remedy: 'Make room on that disk; the service then goes on by itself.',
  },
  shutting_down: {
    status: 503,
    title: 'The service is shutting down',
    retryable: true,
    meaning: 'This node finishes what it has and takes nothing new.',
    remedy: 'Try again, on another node or after the restart.',
  },
  overloaded: {
    status: 503,
    title: 'The service is overloaded',
    retryable: true,
    meaning:
      'The node is behind with its work, or holds as many connections, bodies or event streams as it may.',
    remedy: 'Try again after Retry-After, with fewer at a time.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    retryable: true,
    meaning:
      'The token, or without tokens the address, sends more requests a second than the service allows.',
    remedy: 'Try again after Retry-After, and send fewer.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    retryable: true,
    meaning: 'Something went wrong that the service did not foresee.',
    remedy: 'Try again; if it stays, look in the log of the service for the instance of this problem.',
  },
  lease_unknown: {
    status: null,
    title: 'Unknown lease',
    retryable: false,
    meaning: 'No lease of that id exists, or it ended so long ago that it was forgotten.',
    remedy: 'Check the id; drop the work if it is right.',
  },
  lease_lost: {
    status: null,
    title: 'Lease lost',
    retryable: false,
    meaning: 'Since this lease ended the partition was handed out again, or an operator had it run again.',
    remedy:
      'Drop the work: another lease covers it, or will. Where leases expire, renew in time or set longer ones.',
  },
  lease_settled: {
    status: null,
    title: 'Lease already settled',
    retryable: false,
    meaning: 'The lease was settled before, and what was said then stands.',
    remedy: 'Settle each lease once; repeating the same outcome is always safe.',
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

export const refusalCodes = ['lease_unknown', 'lease_lost', 'lease_settled', 'task_cancelled'] as const
export type RefusalCode = (typeof refusalCodes)[number]

/** Explains to a person why a lease is refused. */
export function refusalDetail(code: RefusalCode): string {
  return `${errorCodes[code].meaning} ${errorCodes[code].remedy}`
}
