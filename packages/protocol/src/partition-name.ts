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
  if (!name.startsWith(`${taskId}-`)) return 'must begin with its taskId and a hyphen'
  const numbers = /^([0-9]+)-([0-9]+)$/.exec(name.slice(taskId.length + 1))
  if (numbers === null) return 'must have the form <taskId>-<group>-<index>, both numbers in decimal digits'
  const part = Number.isSafeInteger(Number(numbers[1])) ? 'index' : 'group'
  return `must have its ${part} at most ${Number.MAX_SAFE_INTEGER}`
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
