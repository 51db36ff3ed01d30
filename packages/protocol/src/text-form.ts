/**
 * The forms that texts on the wire may have, as JSON Schema patterns, each with the sentence that explains
 * a mismatch. A pattern alone would tell a person nothing.
 *
 * Lone surrogates (`\p{Cs}`) have no UTF-8 encoding and NUL has no place in a PostgreSQL text: letting
 * either in would mean storing something else than what was sent.
 */
export interface TextForm {
  readonly pattern: string
  /** What is wrong with a text that does not match, phrased to follow the field's name. */
  readonly rule: (text: string) => string
}

export const wellFormedText: TextForm = {
  pattern: '^[^\\u0000\\p{Cs}]*$',
  rule: () => 'must not contain NUL characters or lone surrogates',
}

/** URLs are folded before they are sent, `%2e%2e` as well: `/tasks/..` is another path, and no order could be given. */
export const taskIdText: TextForm = {
  pattern: '^(?!\\.{1,2}$)[^\\u0000\\p{Cs}]*$',
  rule: (text) =>
    text === '.' || text === '..'
      ? 'must not be "." or "..": in a URL these lead to another path, so the task could not be reached'
      : wellFormedText.rule(text),
}

export const printableText: TextForm = {
  pattern: '^[^\\p{Cc}\\p{Cs}]+$',
  rule: () => 'must not be empty or contain control characters or lone surrogates',
}

export const qualifiedTableName: TextForm = {
  pattern: '^[^.\\p{Cc}\\p{Cs}]+\\.[^.\\p{Cc}\\p{Cs}]+$',
  rule: () =>
    'must have the form <schema>.<table>: two non-empty parts around exactly one dot, no control characters',
}

const formByPattern = new Map(
  [wellFormedText, taskIdText, printableText, qualifiedTableName].map((form) => [form.pattern, form]),
)

export function ruleOfPattern(pattern: string, text: string): string {
  return formByPattern.get(pattern)?.rule(text) ?? `must match ${pattern}`
}
