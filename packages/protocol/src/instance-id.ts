import { brokenRule } from './field-faults.ts'
import { shownValue } from './shown-value.ts'
import { printableText } from './text-form.ts'

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
  if (rule !== undefined) return { ok: false, detail: `${rule}, got ${shownValue(value)}` }
  return { ok: true, instanceId: value as string }
}
