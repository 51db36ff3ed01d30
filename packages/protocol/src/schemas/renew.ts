import Type, { type Static } from 'typebox'
import { MAX_LEASES_PER_REQUEST } from '../limits.ts'
import type { CheckFailure } from '../violation.ts'
import { arrayCheck, leaseIdSchema, refusalSchema } from './lease-reference.ts'
import { leaseSchema } from './pull.ts'

export const renewRequestSchema = Type.Array(leaseIdSchema, {
  minItems: 1,
  maxItems: MAX_LEASES_PER_REQUEST,
  description: 'The leases to extend by their full length from now',
})

export const renewedLeaseSchema = Type.Object({
  leaseId: Type.String({ description: 'The lease as it was named in the request' }),
  expiresAt: leaseSchema.properties.expiresAt,
  expiresInSeconds: leaseSchema.properties.expiresInSeconds,
})
export type RenewedLease = Static<typeof renewedLeaseSchema>

export const renewAnswerSchema = Type.Object(
  { renewed: Type.Array(renewedLeaseSchema), refused: Type.Array(refusalSchema) },
  { description: 'What became of each lease' },
)
export type RenewAnswer = Static<typeof renewAnswerSchema>

const checkElements = arrayCheck(leaseIdSchema, {
  elements: 'lease ids',
  maxElements: MAX_LEASES_PER_REQUEST,
})

export function checkRenewal(body: unknown): { ok: true; leaseIds: string[] } | CheckFailure {
  const checked = checkElements(body)
  return checked.ok ? { ok: true, leaseIds: checked.elements } : checked
}
