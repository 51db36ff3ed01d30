/**
 * The forms that texts on the wire may have, as JSON Schema patterns. Each has a sentence that explains a
 * mismatch, because a pattern alone does not help a person.
 *
 * Lone surrogates (`\p{Cs}`) have no UTF-8 encoding, and a PostgreSQL text cannot contain NUL. Accepting
 * either would mean storing something else than what was sent.
 */
interface TextForm {
  readonly pattern: string
  /**
   * The same pattern in the syntax that all regular expression dialects share, which cannot express
   * surrogates.
   */
  readonly portable: string
  /** Explains a mismatch. Phrased to follow the field's name. */
  readonly rule: (text: string) => string
}

/** `portable` excludes the unwanted characters of this form. `pattern` excludes surrogates as well. */
function textForm(portable: string, rule: TextForm['rule']): TextForm {
  return { portable, pattern: portable.replaceAll('[^', '[^\\p{Cs}'), rule }
}

export const wellFormedText = textForm(
  '^[^\\x00]*$',
  () => 'must not contain NUL characters or lone surrogates',
)

/**
 * Clients normalise URLs before sending them, including `%2e%2e`: `/tasks/..` is another path, so such a task
 * could not be controlled.
 */
export const taskIdText = textForm('^(?:\\.?[^.\\x00]|\\.\\.[^\\x00])[^\\x00]*$', (text) =>
  text === '.' || text === '..'
    ? 'must not be "." or "..": these cannot be used as a path segment of a URL'
    : wellFormedText.rule(text),
)

export const printableText = textForm(
  '^[^\\x00-\\x1f\\x7f-\\x9f]+$',
  () => 'must not be empty or contain control characters or lone surrogates',
)

/** Whitespace beyond ASCII, as literal characters: not every dialect has an escape for it. */
const BLANKS = '\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'
const WITHIN_NAME = '[^.\\x00-\\x1f\\x7f-\\x9f]*'
/** No dot, no control character, and at least one non-blank character. */
const NAME_PART = `${WITHIN_NAME}[^.\\x00-\\x20\\x7f-\\xa0${BLANKS}]${WITHIN_NAME}`

export const qualifiedTableName = textForm(
  `^${NAME_PART}\\.${NAME_PART}$`,
  () =>
    'must have the form <schema>.<table>: two non-blank parts separated by exactly one dot, without control characters',
)

const formByPattern = new Map(
  [wellFormedText, taskIdText, printableText, qualifiedTableName].map((form) => [form.pattern, form]),
)

export function ruleOfPattern(pattern: string, text: string): string {
  return formByPattern.get(pattern)?.rule(text) ?? `must match ${pattern}`
}

/** The pattern to publish in documents, which programs in many languages read. */
export function portablePattern(pattern: string): string {
  return formByPattern.get(pattern)?.portable ?? pattern
}
