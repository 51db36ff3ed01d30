/**
 * The forms that texts on the wire may have, as JSON Schema patterns, each with the sentence that explains
 * a mismatch. A pattern alone would tell a person nothing.
 *
 * Lone surrogates (`\p{Cs}`) have no UTF-8 encoding and NUL has no place in a PostgreSQL text: letting
 * either in would mean storing something else than what was sent.
 */
export interface TextForm {
  readonly pattern: string
  readonly rule: string
}

export const wellFormedText: TextForm = {
  pattern: '^[^\\u0000\\p{Cs}]*$',
  rule: 'must not contain NUL characters or lone surrogates',
}

export const printableText: TextForm = {
  pattern: '^[^\\p{Cc}\\p{Cs}]+$',
  rule: 'must not be empty or contain control characters or lone surrogates',
}

export const qualifiedTableName: TextForm = {
  pattern: '^[^.\\p{Cc}\\p{Cs}]+\\.[^.\\p{Cc}\\p{Cs}]+$',
  rule: 'must have the form <schema>.<table>: two non-empty parts around exactly one dot, no control characters',
}

const ruleByPattern = new Map(
  [wellFormedText, printableText, qualifiedTableName].map((form) => [form.pattern, form.rule]),
)

export function ruleOfPattern(pattern: string): string {
  return ruleByPattern.get(pattern) ?? `must match ${pattern}`
}
