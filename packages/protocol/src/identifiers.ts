import { brokenRule } from './field-faults.ts'
import { printableText } from './text-form.ts'
import { describeValue } from './violation.ts'

/** Kept apart from its schema: clients need these rules without the schema library. */
export const instanceIdKeywords = {
  type: 'string',
  minLength: 1,
  maxLength: 256,
  pattern: printableText.pattern,
} as const

/** Checks the instance id that a client chose for itself. The detail follows the words "the instance id". */
export function checkInstanceId(
  value: unknown,
): { ok: true; instanceId: string } | { ok: false; detail: string } {
  if (Array.isArray(value)) return { ok: false, detail: 'must be given once' }
  const rule = brokenRule(instanceIdKeywords, value)
  if (rule !== undefined) return { ok: false, detail: `${rule}, got ${describeValue(value)}` }
  return { ok: true, instanceId: value as string }
}

/** Kept apart from the schemas for the same reason. */
export const idempotencyKeyKeywords = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  // Characters that a header carries unchanged. Spaces are excluded, so that two keys that a proxy joined do
  // not pass as one.
  pattern: '^[\\x21-\\x7e]+$',
} as const

const visible = new RegExp(idempotencyKeyKeywords.pattern)

/** Checks the idempotency key of a pull. The detail follows the words "Idempotency-Key". */
export function checkIdempotencyKey(
  text: string,
): { ok: true; idempotencyKey: string } | { ok: false; detail: string } {
  const { maxLength } = idempotencyKeyKeywords
  if (text.length <= maxLength && visible.test(text)) return { ok: true, idempotencyKey: text }
  return {
    ok: false,
    detail: `must have 1 to ${maxLength} visible ASCII characters, no spaces, and be given once`,
  }
}
