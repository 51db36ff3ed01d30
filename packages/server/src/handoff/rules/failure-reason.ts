import type { FailureOutcome } from '@baton/protocol'
import { cut, truncated } from './truncated.ts'

/**
 * Which group a failure belongs to. Reasons are free texts, often whole tracebacks, and most of them differ in
 * numbers and ids only. A group is what is left: the line that says what went wrong, with numbers and ids
 * masked.
 */
export interface FailureReason {
  /** Short and stable: it names the group in requests and in the rows of partitions. */
  readonly key: string
  /** Null if the worker gave no reason, or if the group has several. */
  readonly reason: string | null
}

/** The group of failures whose reasons are not listed. */
export const OTHER_REASONS: FailureReason = { key: 'other', reason: null }

const NO_REASON: FailureReason = { key: 'none', reason: null }

export const endedReasons: Readonly<Record<Exclude<FailureOutcome, 'failed'>, FailureReason>> = {
  expired: { key: 'expired', reason: 'the lease expired before it was settled' },
  revoked: { key: 'revoked', reason: 'an operator revoked the lease' },
}

/** What is read of a line, and what is kept of it. */
const LINE_READ = 1000
const LINE_KEPT = 200

export function failureReason(outcome: FailureOutcome, reported: string | null): FailureReason {
  // The texts of these contain the number of the attempt or the holder.
  if (outcome !== 'failed') return endedReasons[outcome]
  const line = truncated(lineOf(reported ?? ''), LINE_READ)
  if (line === '') return NO_REASON
  const reason = cut(masked(line), LINE_KEPT)
  return { key: keyOf(reason), reason }
}

const PYTHON_TRACEBACK = /Traceback \(most recent call last\):\s*$/
const JAVA_CAUSE = /^\s*Caused by:\s+/
const GO_PANIC = /^(?:.*?: )?panic: /
const RUST_PANIC = /^(?:.*?: )?thread '.*' panicked at .*:$/
/** Of Node, Java and .NET; of Ruby. */
const FRAME = /^\s+(?:at|from)\s/
const NAMES_AN_ERROR = /^(?:Uncaught |Exception in thread "[^"]*" )?[\w.$:]*(?:Error|Exception)\b/
/** What databases and compilers say after the error. */
const REMARK = /^(?:DETAIL|HINT|CONTEXT|STATEMENT|QUERY|LINE \d+|note|Note|Node\.js v[\d.]+)\b/

const isIndented = (line: string): boolean => /^\s/.test(line)

/** The line that says what went wrong: of a traceback the one of the error, else the last one. */
export function lineOf(reported: string): string {
  const lines = reported.split(/[\r\n]+/).filter((line) => line.trim() !== '')
  return (errorLine(lines) ?? lines.at(-1) ?? '').trim()
}

function errorLine(lines: readonly string[]): string | undefined {
  const traceback = lines.findLastIndex((line) => PYTHON_TRACEBACK.test(line))
  if (traceback !== -1) {
    const raised = lines.slice(traceback + 1).find((line) => !isIndented(line))
    if (raised !== undefined) return raised
  }
  const cause = lines.findLast((line) => JAVA_CAUSE.test(line))
  if (cause !== undefined) return cause.replace(JAVA_CAUSE, '')
  const panic = lines.find((line) => GO_PANIC.test(line))
  if (panic !== undefined) return panic
  const panicked = lines.findIndex((line) => RUST_PANIC.test(line))
  if (panicked !== -1 && panicked + 1 < lines.length) return lines[panicked + 1]
  const frame = lines.findIndex((line) => FRAME.test(line))
  const said = (frame === -1 ? lines : lines.slice(0, frame)).filter((line) => !isIndented(line))
  if (frame !== -1) return said.findLast((line) => NAMES_AN_ERROR.test(line)) ?? said.at(-1)
  return said.findLast((line) => !REMARK.test(line))
}

const UUID = /(?<![\da-z])[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}(?![\da-z])/gi
const TIME =
  /(?<![\w-])\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)?(?![\w-])/g
/** Only in quotes is it clear where a path ends. */
const QUOTED_PATH = /(["'`])(?:~|\.{1,2}|[a-z]:|[a-z][a-z\d+.-]{1,20}:\/)?[\\/](?:(?!\1).)*\1/gi
const HEX = /(?<![\da-z])(?:0x[\da-f]+|(?=\d*[a-f])(?=[a-f]*\d)[\da-f]{8,})(?![\da-z])/gi
const UPPER_CASE_ID = /(?<![\dA-Za-z])(?=[A-Z]*\d)[\dA-Z]{20,}(?![\dA-Za-z])/g
/** Numbers that are codes, like `exit code 137` or `ORA-01555`. Others, as in `host17`, differ each time. */
const CODE =
  /\b(?:(?:[Ee]xit (?:code|status)|[Ss]tatus(?: [Cc]ode)?|[Cc]ode|[Ee]rrno|[Ss]ignal|SQLSTATE|HTTP(?:\/[\d.]+)?)[ :=([]{1,3}|(?:[Ee]rror|ERROR) )[\dA-Z]{1,5}\b(?![.,]?\d)|\b[A-Z]{2,4}-\d{4,5}\b/
const NUMBER = /(?<![\dA-Za-z])\d+(?:[.,_]\d+)*|(?<=[A-Za-z]{4})\d+(?![\dA-Za-z])/
const CODE_OR_NUMBER = new RegExp(`(${CODE.source})|${NUMBER.source}`, 'g')

/** The line without what differs between failures of the same kind. */
export function masked(line: string): string {
  return line
    .replaceAll(UUID, '<id>')
    .replaceAll(TIME, '<time>')
    .replaceAll(QUOTED_PATH, '$1<path>$1')
    .replaceAll(HEX, '<id>')
    .replaceAll(UPPER_CASE_ID, '<id>')
    .replaceAll(CODE_OR_NUMBER, (found: string, code: string | undefined) =>
      code === undefined ? '#' : found,
    )
    .replaceAll(/\s+/g, ' ')
}

const SLUG_KEPT = 24

/** Words of the reason for people, and a hash of all of it. */
function keyOf(reason: string): string {
  const words = reason
    .toLowerCase()
    .replaceAll(/[^a-z]+/g, '-')
    .slice(0, SLUG_KEPT)
    .replaceAll(/^-+|-+$/g, '')
  return `${words === '' ? 'reason' : words}-${hashOf(reason)}`
}

/** FNV-1a with 32 bits, in base 36: enough to tell apart reasons that begin with the same words. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash >>> 0).toString(36).padStart(7, '0')
}
