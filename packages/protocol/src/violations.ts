import { InexactNumber } from './exact-json.ts'
import { MAX_LISTED_VIOLATIONS } from './limits.ts'
import type { Violation } from './schemas/problem.ts'

const MAX_SHOWN_CHARACTERS = 40

/** Describes a received value in a sentence: its type, so that "5" and 5 differ, and its first characters. */
export function describeValue(value: unknown): string {
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

/**
 * A JSON string literal with at most the first forty characters of the text. JSON also escapes unprintable
 * characters.
 */
export function quoted(text: string): string {
  if (text.length <= MAX_SHOWN_CHARACTERS) return JSON.stringify(text)
  // Truncate by code point, so that no surrogate pair is split.
  const beginning = [...text.slice(0, MAX_SHOWN_CHARACTERS * 2)].slice(0, MAX_SHOWN_CHARACTERS).join('')
  return beginning === text ? JSON.stringify(text) : JSON.stringify(`${beginning}…`)
}

export interface CheckFailure {
  ok: false
  /** In document order, at most `MAX_LISTED_VIOLATIONS`. */
  violations: Violation[]
  /** The number of all violations, including those that are not listed. */
  total: number
  /** Set if the call-back has more levels than allowed. */
  tooManyLevels?: true
}

/** Longer names are omitted from pointers, so that a hostile field name is not echoed in full. */
const MAX_POINTED_NAME = 256

export function soleViolation(pointer: string, detail: string): CheckFailure {
  return { ok: false, violations: [{ pointer, detail }], total: 1 }
}

/** Extends a JSON Pointer by one step, an array position or a field name. */
export function pointerTo(base: string, step: number | string): string {
  if (typeof step === 'number') return `${base}/${step}`
  if (step.length > MAX_POINTED_NAME) return base
  return `${base}/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** Counts all violations and keeps the first hundred. */
export class ViolationList {
  readonly #listed: Violation[] = []
  #total = 0

  get isEmpty(): boolean {
    return this.#total === 0
  }

  /** The detail is computed only if it will be listed, so that a body with a million faults stays cheap. */
  add(pointer: string, detail: () => string): void {
    this.#total += 1
    if (this.#listed.length < MAX_LISTED_VIOLATIONS) this.#listed.push({ pointer, detail: detail() })
  }

  failure(): CheckFailure {
    return { ok: false, violations: this.#listed, total: this.#total }
  }
}
