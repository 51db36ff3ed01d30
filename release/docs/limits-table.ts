import {
  idempotencyKeyKeywords,
  instanceIdKeywords,
  MAX_BATCH,
  MAX_CHECKPOINT_BYTES,
  MAX_CHOSEN,
  MAX_EXTRA_FIELDS_BYTES,
  MAX_EXTRA_FIELDS_DEPTH,
  MAX_KEPT_NOTE_LENGTH,
  MAX_KEPT_REASON_LENGTH,
  MAX_LEASES_PER_REQUEST,
  MAX_LISTED_VIOLATIONS,
  MAX_PAGE_LENGTH,
  MAX_PARTITION_NAME_LENGTH,
  MAX_RETRIED_BY_NAME,
  MAX_TABLE_NAME_LENGTH,
  MAX_TASK_ID_LENGTH,
  MAX_WAIT_SECONDS,
} from '@baton/protocol'
import { MAX_SENT_REASON_LENGTH } from '../../packages/protocol/src/schemas/leases.ts'
import { type SettingName, settingOf } from '../../packages/server/src/config.ts'
import { MOST_INSTANCES } from '../../packages/server/src/handoff/engine/verbs/maintenance-steps.ts'
import { INSTANCES_WATCHED } from '../../packages/server/src/handoff/events.ts'
import { MAX_SUBSCRIPTIONS } from '../../packages/server/src/handoff/outbox.ts'
import { LEASE_MAX_MILLIS } from '../../packages/server/src/handoff/rules/policy.ts'
import { OTHER_SHAPE } from '../../packages/server/src/http/bodies/json-body.ts'
import { MAX_DEPTH, SMALL_BYTES } from '../../packages/server/src/http/bodies/json-shape.ts'
import { MOST_STREAMS, MOST_STREAMS_PER_CALLER } from '../../packages/server/src/http/routes/events-route.ts'
import { callBackShape, HEADERS_LIMIT_BYTES, HEADERS_MILLIS } from '../../packages/server/src/http/server.ts'
import { DEFAULT_BODY_LIMIT_BYTES } from '../../packages/server/src/http/service.ts'
import { table } from './table.ts'

const grouped = (number: number) => number.toLocaleString('en-US')
const standard = (name: SettingName) => Number(settingOf(name).default)
const mib = (bytes: number) => `${bytes / 2 ** 20} MiB`
const kib = (bytes: number) => `${bytes / 1024} KiB`
const seconds = (millis: number) => `${millis / 1000} s`

const callBack = callBackShape({ callBackPartitions: standard('maxCallBackPartitions') })
const large = kib(SMALL_BYTES)

/** The limits of the protocol. Those of a setting have its default. */
const limits: readonly (readonly [what: string, limit: string])[] = [
  ['body of a call-back (`--body-limit-mb`)', `${standard('bodyLimitMb')} MiB`],
  ['body of any other request', mib(DEFAULT_BODY_LIMIT_BYTES)],
  ['request line and headers', kib(HEADERS_LIMIT_BYTES)],
  [
    'time for a request to arrive (`--request-seconds`)',
    `${standard('requestSeconds')} s in all, ${seconds(HEADERS_MILLIS)} for the headers`,
  ],
  [`nesting of a body from ${large} on`, `${MAX_DEPTH} levels`],
  [
    `values in a body from ${large} on`,
    `${grouped(OTHER_SHAPE.values)}; in a call-back ${grouped(callBack.values)}`,
  ],
  ['size of one descriptor', kib(callBack.elementBytes)],
  ['descriptors in a call-back (`--max-call-back-partitions`)', grouped(callBack.elements)],
  ['levels in a call-back (`--max-call-back-levels`)', grouped(standard('maxCallBackLevels'))],
  ['fields of a descriptor beyond the contract', sizeOfExtraFields()],
  ['task id', `${grouped(MAX_TASK_ID_LENGTH)} characters`],
  ['table name', `${grouped(MAX_TABLE_NAME_LENGTH)} characters`],
  ['partition name', `${grouped(MAX_PARTITION_NAME_LENGTH)} characters`],
  ['level, index, record count, records of a task', grouped(Number.MAX_SAFE_INTEGER)],
  ['instance id', `${instanceIdKeywords.maxLength} characters`],
  ['idempotency key', `${idempotencyKeyKeywords.maxLength} characters`],
  ['leases in a settle or renew', grouped(MAX_LEASES_PER_REQUEST)],
  ['partitions in a pull', grouped(MAX_BATCH)],
  ['tables, and tasks, that a pull names', `${MAX_CHOSEN} each`],
  ['wait of a pull', `${MAX_WAIT_SECONDS} s`],
  ['pulls that wait on a node (`--max-waiting-pulls`)', grouped(standard('maxWaitingPulls'))],
  [
    'requests in progress on a connection (`--max-requests-per-connection`)',
    grouped(standard('maxRequestsPerConnection')),
  ],
  ['length of a lease', `${LEASE_MAX_MILLIS / 3_600_000} h`],
  [
    'reason of a settlement',
    `${grouped(MAX_SENT_REASON_LENGTH)} characters sent, ${grouped(MAX_KEPT_REASON_LENGTH)} UTF-16 code units kept`,
  ],
  ['checkpoint', `${grouped(MAX_CHECKPOINT_BYTES)} bytes of UTF-8`],
  [
    'note of a progress',
    `${grouped(MAX_SENT_REASON_LENGTH)} characters sent, ${grouped(MAX_KEPT_NOTE_LENGTH)} kept`,
  ],
  ['partitions named in a retry', grouped(MAX_RETRIED_BY_NAME)],
  ['entries in a page of a list', grouped(MAX_PAGE_LENGTH)],
  ['violations, and conflicts, listed in a problem', `${MAX_LISTED_VIOLATIONS} each`],
  ['subscriptions', grouped(MAX_SUBSCRIPTIONS)],
  ['event streams', `${grouped(MOST_STREAMS)} of a node, ${MOST_STREAMS_PER_CALLER} of one token or address`],
  ['instances that are kept', `the ${grouped(MOST_INSTANCES)} seen last`],
  ['instances in event streams', `the first ${grouped(INSTANCES_WATCHED)} by name`],
]

function sizeOfExtraFields(): string {
  return `${grouped(MAX_EXTRA_FIELDS_BYTES)} bytes as JSON, ${MAX_EXTRA_FIELDS_DEPTH} levels`
}

export const limitsTable = (): string => table(['what', 'limit'], limits)
