import { InexactNumber } from './exact-json.ts'

const MAX_SHOWN_CHARACTERS = 40

/** Names a received value in a sentence: its type, so that "5" and 5 differ, and its beginning. */
export function shownValue(value: unknown): string {
  if (value === null) return 'null'
  if (value instanceof InexactNumber) return `the number ${value.text.slice(0, MAX_SHOWN_CHARACTERS)}`
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : 'an array'
  switch (typeof value) {
    case 'string':
      return value === '' ? 'an empty string' : `the string ${quoted(value)}`
    case 'number':
      return `the number ${value}`
    case 'boolean':
      return `the boolean ${value}`
    case 'undefined':
      return 'nothing'
    default:
      return 'an object'
  }
}

/** A JSON string literal of at most forty characters of the text; JSON also escapes what cannot be printed. */
export function quoted(text: string): string {
  if (text.length <= MAX_SHOWN_CHARACTERS) return JSON.stringify(text)
  // By code point, so that the cut never leaves half of a surrogate pair.
  const beginning = [...text.slice(0, MAX_SHOWN_CHARACTERS * 2)].slice(0, MAX_SHOWN_CHARACTERS).join('')
  return beginning === text ? JSON.stringify(text) : JSON.stringify(`${beginning}…`)
}
