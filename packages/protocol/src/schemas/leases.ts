import Type, { type Static, type TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import { refusalCodes, refusalDetail } from '../error-codes.ts'
import { brokenRule, fieldFaults, type ObjectShape } from '../field-faults.ts'
import {
  DEFAULT_TABLE_FIELD,
  MAX_CHECKPOINT_BYTES,
  MAX_KEPT_NOTE_LENGTH,
  MAX_KEPT_REASON_LENGTH,
  MAX_LEASES_PER_REQUEST,
  MAX_RETRY_AFTER_SECONDS,
} from '../limits.ts'
import { outcomes } from '../states.ts'
import { wellFormedText } from '../text-form.ts'
import { type CheckFailure, describeValue, pointerTo, soleViolation, ViolationList } from '../violations.ts'
import { descriptorFields } from './descriptor.ts'
import { count, oneOf, orNull, timestamp, traceparent } from './schema-parts.ts'

const checkpointText = Type.String({ pattern: wellFormedText.pattern, examples: ['{"after": 41200}'] })

/** In answers. */
export const checkpointSchema = Type.Optional(
  Type.String({
    ...checkpointText,
    description: 'The last checkpoint of the partition; absent if it has none',
  }),
)

/** In requests. A longer one is refused with its lease, and the others go on. */
const sentCheckpoint = Type.Optional(
  orNull(
    Type.String({
      ...checkpointText,
      description: `How far the work is, in words of the worker; the next lease of the partition carries it. At most ${MAX_CHECKPOINT_BYTES} bytes of UTF-8; null clears it, and a lease without it keeps the last one`,
    }),
  ),
)

/** The longest reason or note that is read. */
export const MAX_SENT_REASON_LENGTH = 65_536

const progressFields = {
  records: Type.Optional(count({ description: 'Number of records processed so far', examples: [12000] })),
  note: Type.Optional(
    Type.String({
      maxLength: MAX_SENT_REASON_LENGTH,
      pattern: wellFormedText.pattern,
      description: `Shown to operators; the first ${MAX_KEPT_NOTE_LENGTH} characters are kept`,
      examples: ['sorting'],
    }),
  ),
}

export const progressSchema = Type.Object(
  { ...progressFields, at: timestamp({ description: 'When it was reported' }) },
  { description: 'What the worker last reported while its lease runs; absent if nothing' },
)
export type LeaseProgress = Static<typeof progressSchema>

export const leaseSchema = Type.Object(
  {
    id: Type.String({
      description: 'A secret: a client that knows the id can renew and settle the lease',
      examples: ['1-1-5rZgDvRtAkmEHc4F'],
    }),
    attempt: Type.Integer({
      minimum: 1,
      description: 'The number of the attempt at the partition',
      examples: [1],
    }),
    fencingToken: Type.Integer({
      minimum: 0,
      description:
        'Larger with each lease of the partition. Store it with the results, and refuse to overwrite those of a larger one',
      examples: [1772366400000],
    }),
    expiresAt: timestamp({
      description: 'When the lease expires unless it is renewed, by the clock of the service',
    }),
    expiresInSeconds: Type.Number({
      minimum: 0,
      description: 'Time until the lease expires; does not depend on the clock of the client',
      examples: [300],
    }),
    checkpoint: checkpointSchema,
  },
  { description: 'The lease of a worker on one partition' },
)
export type Lease = Static<typeof leaseSchema>

const defaultPulledPartitionSchema = pulledPartition(DEFAULT_TABLE_FIELD)
export type PulledPartition = Static<typeof defaultPulledPartitionSchema>

export function pulledPartitionSchema(
  tableField: string = DEFAULT_TABLE_FIELD,
): typeof defaultPulledPartitionSchema {
  return tableField === DEFAULT_TABLE_FIELD ? defaultPulledPartitionSchema : pulledPartition(tableField)
}

function pulledPartition(tableField: string) {
  return Type.Object(
    {
      ...descriptorFields(tableField),
      lease: orNull(leaseSchema),
      traceparent: Type.Optional(traceparent()),
    },
    {
      description:
        'A partition that was handed out. `lease` is null if the service delivers at most once. Includes the additional fields of the descriptor if the service keeps them',
    },
  )
}

const emptyBecause = Type.Optional(
  Type.Object(
    {
      code: oneOf(['too_many_leases', 'instance_paused']),
      detail: Type.String({ description: 'The reason in words' }),
    },
    {
      description:
        'Why no partition was handed out, if there is another reason than that none is ready. too_many_leases: there are as many leases as the service allows; instance_paused: an operator paused the instance. Then the pull does not wait',
    },
  ),
)

export function pullAnswerSchema(tableField: string = DEFAULT_TABLE_FIELD) {
  return Type.Object(
    {
      partitions: Type.Array(pulledPartitionSchema(tableField), {
        description: 'In the order of hand-out; empty if no partition is ready',
      }),
      because: emptyBecause,
    },
    { description: 'The partitions that were handed out' },
  )
}
export type PullAnswer = Static<ReturnType<typeof pullAnswerSchema>>

interface ArrayWording {
  /** Completes the message "the body must be an array of …". */
  elements: string
  maxElements: number
}

/**
 * Creates the check of a body that is an array of independent elements, objects or scalars. The compiled
 * schema decides; its keywords give the explanation when an element is invalid.
 */
function arrayCheck<S extends TSchema>(
  /** The schema that explains why an element is invalid. */
  meant: (element: unknown) => TSchema,
  element: S,
  wording: ArrayWording,
) {
  const compiled = Compile(element)
  const { elements, maxElements } = wording
  return (body: unknown): { ok: true; elements: Static<S>[] } | CheckFailure => {
    if (!Array.isArray(body)) {
      return soleViolation('', `the body must be an array of ${elements}, got ${describeValue(body)}`)
    }
    if (body.length === 0)
      return soleViolation('', `the array must not be empty; it must contain ${elements}`)
    if (body.length > maxElements) {
      const detail = `the array must have at most ${maxElements} ${elements}, got ${body.length}; send several requests`
      return soleViolation('', detail)
    }
    const violations = new ViolationList()
    for (let at = 0; at < body.length; at += 1) {
      if (!compiled.Check(body[at])) explain(meant(body[at]), body[at], pointerTo('', at), violations)
    }
    return violations.isEmpty ? { ok: true, elements: body as Static<S>[] } : violations.failure()
  }
}

function explain(schema: TSchema, value: unknown, at: string, violations: ViolationList): void {
  if ((schema as { type?: string }).type !== 'object') {
    const rule = brokenRule(schema, value) ?? 'is not valid'
    violations.add(at, () => `each element ${rule}, got ${describeValue(value)}`)
  } else if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    violations.add(at, () => `each element must be an object, got ${describeValue(value)}`)
  } else {
    const shape = schema as unknown as ObjectShape
    for (const fault of fieldFaults(shape, value as Record<string, unknown>, 'ignore')) {
      const pointer = pointerTo(at, fault.field)
      violations.add(fault.element === undefined ? pointer : pointerTo(pointer, fault.element), fault.detail)
    }
  }
}

/**
 * A lease id as a client sends it: any text of a reasonable size, because an unknown lease is a regular
 * answer and not an error.
 */
export const leaseIdSchema = Type.String({
  minLength: 1,
  maxLength: 256,
  pattern: wellFormedText.pattern,
  description: 'The id of a lease, from a pull',
  examples: ['1-1-5rZgDvRtAkmEHc4F'],
})

const sentLeaseId = Type.String({
  description: 'The lease id from the request',
  examples: ['1-1-5rZgDvRtAkmEHc4F'],
})

export const refusalSchema = Type.Object(
  {
    leaseId: sentLeaseId,
    code: oneOf(refusalCodes, { description: 'The error code', examples: ['lease_lost'] }),
    detail: Type.String({
      description: 'An explanation for people',
      examples: [refusalDetail('lease_lost')],
    }),
  },
  { description: 'A lease that was refused. Other leases of the request are not affected' },
)
export type Refusal = Static<typeof refusalSchema>

export const renewalSchema = Type.Object(
  {
    leaseId: leaseIdSchema,
    progress: Type.Optional(
      Type.Object(progressFields, {
        description: 'Replaces what was reported before. Kept in memory: a new leader starts without it',
      }),
    ),
    checkpoint: sentCheckpoint,
  },
  { description: 'A lease to extend, and how far its work is' },
)
export type Renewal = Static<typeof renewalSchema>

export const leaseToRenewSchema = Type.Union([leaseIdSchema, renewalSchema], {
  description: 'The id of a lease, or an object that also says how far its work is',
})

export const renewRequestSchema = Type.Array(leaseToRenewSchema, {
  minItems: 1,
  maxItems: MAX_LEASES_PER_REQUEST,
  description:
    'The leases to extend, as ids or as objects. Each is extended to its full length from now. If a lease occurs more than once, the last progress and checkpoint count',
})

export const renewedLeaseSchema = Type.Object({
  leaseId: sentLeaseId,
  expiresAt: leaseSchema.properties.expiresAt,
  expiresInSeconds: leaseSchema.properties.expiresInSeconds,
})
export type RenewedLease = Static<typeof renewedLeaseSchema>

export const renewAnswerSchema = Type.Object(
  { renewed: Type.Array(renewedLeaseSchema), refused: Type.Array(refusalSchema) },
  { description: 'The result for each lease' },
)
export type RenewAnswer = Static<typeof renewAnswerSchema>

const checkLeases = arrayCheck(
  (element) => (typeof element === 'object' && element !== null ? renewalSchema : leaseIdSchema),
  leaseToRenewSchema,
  { elements: 'lease ids or objects with a leaseId', maxElements: MAX_LEASES_PER_REQUEST },
)

export function checkRenewal(body: unknown): { ok: true; renewals: Renewal[] } | CheckFailure {
  const checked = checkLeases(body)
  if (!checked.ok) return checked
  return {
    ok: true,
    renewals: checked.elements.map((one) => (typeof one === 'string' ? { leaseId: one } : one)),
  }
}

export const settlementSchema = Type.Object(
  {
    leaseId: leaseIdSchema,
    outcome: oneOf(outcomes, {
      description:
        'done: the partition is finished; failed: the attempt failed and counts; ' +
        'released: the worker returns the partition, and the attempt does not count',
      examples: ['done'],
    }),
    reason: Type.Optional(
      Type.String({
        maxLength: MAX_SENT_REASON_LENGTH,
        pattern: wellFormedText.pattern,
        description: `Shown to operators; the first ${MAX_KEPT_REASON_LENGTH} characters are kept`,
        examples: ['compute table is locked'],
      }),
    ),
    retryAfterSeconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: MAX_RETRY_AFTER_SECONDS,
        description: 'Time before the next attempt, instead of the configured back-off',
        examples: [30],
      }),
    ),
    final: Type.Optional(
      Type.Boolean({ description: 'With failed: park the partition now, even if attempts are left' }),
    ),
    records: Type.Optional(
      count({
        description: 'Number of records that were processed; stored in addition to record_count',
        examples: [25000],
      }),
    ),
    checkpoint: sentCheckpoint,
  },
  { description: 'The outcome of one lease. done clears its checkpoint' },
)
export type Settlement = Static<typeof settlementSchema>

export const settleRequestSchema = Type.Array(settlementSchema, {
  minItems: 1,
  maxItems: MAX_LEASES_PER_REQUEST,
  description: 'If a lease occurs more than once, the first settlement counts',
})

export function settleAnswerSchema(tableField: string = DEFAULT_TABLE_FIELD) {
  return Type.Object(
    {
      settled: Type.Array(sentLeaseId, {
        description: 'Leases that are settled with this outcome, by this request or an earlier one',
      }),
      parked: Type.Optional(
        Type.Array(sentLeaseId, {
          description: 'Settled leases whose partition was parked. Absent if there are none',
        }),
      ),
      refused: Type.Array(refusalSchema),
      partitions: Type.Array(pulledPartitionSchema(tableField), {
        description:
          'The next partitions, if the request asks for them with wait, batch or records; otherwise empty',
      }),
      because: emptyBecause,
    },
    { description: 'The result for each settlement' },
  )
}
export type SettleAnswer = Static<ReturnType<typeof settleAnswerSchema>>

const checkEachSettlement = arrayCheck(() => settlementSchema, settlementSchema, {
  elements: 'settlements',
  maxElements: MAX_LEASES_PER_REQUEST,
})

export function checkSettlements(body: unknown): { ok: true; settlements: Settlement[] } | CheckFailure {
  const checked = checkEachSettlement(body)
  return checked.ok ? { ok: true, settlements: checked.elements } : checked
}
