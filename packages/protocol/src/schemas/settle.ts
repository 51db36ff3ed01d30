import Type, { type Static } from 'typebox'
import {
  DEFAULT_TABLE_FIELD,
  MAX_KEPT_REASON_LENGTH,
  MAX_LEASES_PER_REQUEST,
  MAX_RETRY_AFTER_SECONDS,
} from '../limits.ts'
import { outcomes } from '../states.ts'
import { wellFormedText } from '../text-form.ts'
import type { CheckFailure } from '../violation.ts'
import { arrayCheck, leaseIdSchema, refusalSchema } from './lease-reference.ts'
import { pulledPartitionSchema } from './pull.ts'
import { count, oneOf } from './schema-parts.ts'

const MAX_SENT_REASON_LENGTH = 65_536

export const settlementSchema = Type.Object(
  {
    leaseId: leaseIdSchema,
    outcome: oneOf(outcomes, {
      description:
        'done: finished with the partition; failed: tried and could not, costs an attempt; ' +
        'released: giving it back untried, costs none',
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
        description: 'Replaces the usual back-off before the next attempt',
        examples: [30],
      }),
    ),
    final: Type.Optional(
      Type.Boolean({ description: 'With failed: park the partition now, whatever attempts are left' }),
    ),
    records: Type.Optional(
      count({ description: 'Records actually processed; kept beside the declared count', examples: [25000] }),
    ),
  },
  { description: 'How the work under one lease ended' },
)
export type Settlement = Static<typeof settlementSchema>

export const settleRequestSchema = Type.Array(settlementSchema, {
  minItems: 1,
  maxItems: MAX_LEASES_PER_REQUEST,
  description: 'Of several settlements of one lease the first counts',
})

export function settleAnswerSchema(tableField: string = DEFAULT_TABLE_FIELD) {
  return Type.Object(
    {
      settled: Type.Array(Type.String(), { description: 'Leases that are settled as asked, now or before' }),
      parked: Type.Optional(
        Type.Array(Type.String(), {
          description:
            'Those of them that failed for good: their partitions are parked. Absent where there are none',
        }),
      ),
      refused: Type.Array(refusalSchema),
      partitions: Type.Array(pulledPartitionSchema(tableField), {
        description:
          'The next partitions, where a preference asked for some: wait, batch or records; empty otherwise',
      }),
    },
    { description: 'What became of each settlement' },
  )
}
export type SettleAnswer = Static<ReturnType<typeof settleAnswerSchema>>

const checkElements = arrayCheck(settlementSchema, {
  elements: 'settlements',
  maxElements: MAX_LEASES_PER_REQUEST,
})

export function checkSettlements(body: unknown): { ok: true; settlements: Settlement[] } | CheckFailure {
  const checked = checkElements(body)
  return checked.ok ? { ok: true, settlements: checked.elements } : checked
}
