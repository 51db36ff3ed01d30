/**
 * The forms that texts on the wire may have, as JSON Schema patterns, each with the sentence that explains
 * a mismatch. A pattern alone would tell a person nothing.
 *
 * Lone surrogates (`\p{Cs}`) have no UTF-8 encoding and NUL has no place in a PostgreSQL text: letting
 * either in would mean storing something else than what was sent.
 */
export interface TextForm {
  readonly pattern: string
  /** The same in what regular expressions of all languages have in common, which has no words for surrogates. */
  readonly portable: string
  /** What is wrong with a text that does not match, phrased to follow the field's name. */
  readonly rule: (text: string) => string
}

/** `portable` says which characters are not wanted; surrogates are wanted nowhere. */
function textForm(portable: string, rule: TextForm['rule']): TextForm {
  return { portable, pattern: portable.replaceAll('[^', '[^\\p{Cs}'), rule }
}

export const wellFormedText = textForm(
  '^[^\\x00]*$',
  () => 'must not contain NUL characters or lone surrogates',
)

/** URLs are folded before they are sent, `%2e%2e` as well: `/tasks/..` is another path, and no order could be given. */
export const taskIdText = textForm('^(?:\\.?[^.\\x00]|\\.\\.[^\\x00])[^\\x00]*$', (text) =>
  text === '.' || text === '..'
    ? 'must not be "." or "..": in a URL these lead to another path, so the task could not be reached'
    : wellFormedText.rule(text),
)

export const printableText = textForm(
  '^[^\\x00-\\x1f\\x7f-\\x9f]+$',
  () => 'must not be empty or contain control characters or lone surrogates',
)

/** Blanks beyond ASCII. As themselves: not every language has an escape for them. */
const BLANKS = '\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'
const WITHIN_NAME = '[^.\\x00-\\x1f\\x7f-\\x9f]*'
/** No dot and no control character, and something that is not blank. */
const NAME_PART = `${WITHIN_NAME}[^.\\x00-\\x20\\x7f-\\xa0${BLANKS}]${WITHIN_NAME}`

export const qualifiedTableName = textForm(
  `^${NAME_PART}\\.${NAME_PART}$`,
  () =>
    'must have the form <schema>.<table>: two parts that are not blank around exactly one dot, no control characters',
)

const formByPattern = new Map(
  [wellFormedText, taskIdText, printableText, qualifiedTableName].map((form) => [form.pattern, form]),
)

export function ruleOfPattern(pattern: string, text: string): string {
  return formByPattern.get(pattern)?.rule(text) ?? `must match ${pattern}`
}

/** What others are told of a pattern: a document is read by programs in languages of all kinds. */
export function portablePattern(pattern: string): string {
  return formByPattern.get(pattern)?.portable ?? pattern
}
