import { brokenRule } from './field-faults.ts'
import { printableText } from './text-form.ts'
import { describeValue } from './violation.ts'

/** Apart from the schema that is made of it: a page that gives itself a name need not load what makes schemas. */
export const instanceIdKeywords = {
  type: 'string',
  minLength: 1,
  maxLength: 256,
  pattern: printableText.pattern,
} as const

/** Holds a self-given name against the rules; the detail follows the words "the instance id". */
export function checkInstanceId(
  value: unknown,
): { ok: true; instanceId: string } | { ok: false; detail: string } {
  if (Array.isArray(value)) return { ok: false, detail: 'must be given once' }
  const rule = brokenRule(instanceIdKeywords, value)
  if (rule !== undefined) return { ok: false, detail: `${rule}, got ${describeValue(value)}` }
  return { ok: true, instanceId: value as string }
}

/** Apart from schemas, like the instance id: senders need the rule, not what makes schemas. */
export const idempotencyKeyKeywords = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  // What a header carries unchanged. Without spaces, two keys that were joined on the way are not taken for one.
  pattern: '^[\\x21-\\x7e]+$',
} as const

const visible = new RegExp(idempotencyKeyKeywords.pattern)

/** Holds the key of a pull against the rules; the detail follows the words "Idempotency-Key". */
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
