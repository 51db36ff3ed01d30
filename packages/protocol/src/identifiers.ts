import { brokenRule } from './field-faults.ts'
import { MAX_CHOSEN, MAX_TABLE_NAME_LENGTH, MAX_TASK_ID_LENGTH } from './limits.ts'
import { printableText, qualifiedTableName, taskIdText } from './text-form.ts'
import { describeValue } from './violations.ts'

// Names that clients send: instances, keys, tables and tasks, traces. Kept apart from the schemas, because
// clients need these rules without the schema library.

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
  if (Array.isArray(value)) return { ok: false, detail: 'must not be repeated' }
  const rule = brokenRule(instanceIdKeywords, value)
  if (rule !== undefined) return { ok: false, detail: `${rule}, got ${describeValue(value)}` }
  return { ok: true, instanceId: value as string }
}

export const idempotencyKeyKeywords = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  // Characters that a header carries unchanged. Spaces are excluded, so that two keys that a proxy joined do
  // not pass as one.
  pattern: '^[\\x21-\\x7e]+$',
} as const

const visible = /* @__PURE__ */ new RegExp(idempotencyKeyKeywords.pattern)

/** Checks the idempotency key of a pull. The detail follows the words "Idempotency-Key". */
export function checkIdempotencyKey(
  text: string,
): { ok: true; idempotencyKey: string } | { ok: false; detail: string } {
  const { maxLength } = idempotencyKeyKeywords
  if (text.length <= maxLength && visible.test(text)) return { ok: true, idempotencyKey: text }
  return {
    ok: false,
    detail: `must have 1 to ${maxLength} visible ASCII characters without spaces, and must not be repeated`,
  }
}

export const chosenKeywords = {
  table: {
    type: 'string',
    minLength: 1,
    maxLength: MAX_TABLE_NAME_LENGTH,
    pattern: qualifiedTableName.pattern,
  },
  task: { type: 'string', minLength: 1, maxLength: MAX_TASK_ID_LENGTH, pattern: taskIdText.pattern },
} as const

/** Checks the tables or tasks that a request names. The detail is a sentence about the parameter. */
export function checkChosen(
  kind: 'table' | 'task',
  names: readonly string[],
): { ok: true; names: readonly string[] } | { ok: false; detail: string } {
  const distinct = [...new Set(names)]
  if (distinct.length > MAX_CHOSEN)
    return {
      ok: false,
      detail: `a request can name at most ${MAX_CHOSEN} ${kind}s, got ${distinct.length}`,
    }
  for (const name of distinct) {
    const rule = brokenRule(chosenKeywords[kind], name)
    if (rule !== undefined) return { ok: false, detail: `${kind} ${rule}, got ${describeValue(name)}` }
  }
  return { ok: true, names: distinct }
}

/** `<version>-<trace id>-<parent id>-<flags>`. Later versions may append more fields. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const ZEROS = /^0+$/

/**
 * Parses a `traceparent` of W3C Trace Context and returns the form to pass on. Returns null for a value that
 * the specification says to ignore. An unknown later version is passed on as version 00, with the only flag
 * of that version.
 */
export function readTraceparent(text: string | undefined): string | null {
  const [, version, traceId = '', parentId = '', flags = '', more] = TRACEPARENT.exec(text ?? '') ?? []
  if (version === undefined || version === 'ff') return null
  if (ZEROS.test(traceId) || ZEROS.test(parentId)) return null
  if (version !== '00') return `00-${traceId}-${parentId}-0${Number.parseInt(flags, 16) & 1}`
  return more === undefined ? `00-${traceId}-${parentId}-${flags}` : null
}

/**
 * Partition names: `<taskId>-<group>-<index>`. The task id may itself contain hyphens, so parsing a name
 * requires the task id.
 */
export interface ParsedPartitionName {
  level: number
  index: number
  /** False if a number has leading zeros. The name then denotes the same partition in another spelling. */
  canonical: boolean
}

const HYPHEN = 45
const ZERO = 48
const NINE = 57

export function partitionName(taskId: string, level: number, index: number): string {
  return `${taskId}-${level}-${index}`
}

export function parsePartitionName(taskId: string, name: string): ParsedPartitionName | undefined {
  const groupStart = taskId.length + 1
  if (name.charCodeAt(taskId.length) !== HYPHEN || !name.startsWith(taskId)) return undefined
  const groupEnd = endOfDigits(name, groupStart)
  if (groupEnd === groupStart || name.charCodeAt(groupEnd) !== HYPHEN) return undefined
  const indexStart = groupEnd + 1
  if (indexStart === name.length || endOfDigits(name, indexStart) !== name.length) return undefined
  const level = readDigits(name, groupStart, groupEnd)
  const index = readDigits(name, indexStart, name.length)
  if (!Number.isSafeInteger(level) || !Number.isSafeInteger(index)) return undefined
  return {
    level,
    index,
    canonical: !hasLeadingZero(name, groupStart, groupEnd) && !hasLeadingZero(name, indexStart, name.length),
  }
}

/** Explains why a name is invalid. The name is known not to parse. */
export function explainPartitionName(taskId: string, name: string): string {
  if (!name.startsWith(`${taskId}-`)) return 'must begin with the taskId and a hyphen'
  const numbers = /^([0-9]+)-([0-9]+)$/.exec(name.slice(taskId.length + 1))
  if (numbers === null)
    return 'must have the form <taskId>-<group>-<index>, with group and index in decimal digits'
  const part = Number.isSafeInteger(Number(numbers[1])) ? 'an index' : 'a group'
  return `must have ${part} of at most ${Number.MAX_SAFE_INTEGER}`
}

function endOfDigits(text: string, start: number): number {
  let at = start
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code < ZERO || code > NINE) break
    at += 1
  }
  return at
}

/**
 * Faster than parsing a substring. Beyond the safe integers the result is inexact, but stays out of range.
 */
function readDigits(text: string, start: number, end: number): number {
  let number = 0
  for (let at = start; at < end; at += 1) number = number * 10 + (text.charCodeAt(at) - ZERO)
  return number
}

function hasLeadingZero(text: string, start: number, end: number): boolean {
  return end - start > 1 && text.charCodeAt(start) === ZERO
}
