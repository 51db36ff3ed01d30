import { randomFillSync } from 'node:crypto'

/** It names the partition and its lease, so settling needs no index. 96 random bits: not to be guessed. */
export interface LeaseRef {
  readonly partition: number
  readonly leaseNumber: number
  readonly secret: string
}

export const SECRET_BYTES = 12

/** Twelve bytes in base64url. */
const SECRET = /^[A-Za-z0-9_-]{16}$/
const LONGEST_NUMBER = 11

const POOL_BYTES = SECRET_BYTES * 512

/** Secrets from a pool: a request to the system for each is slow (bench scenario `one-by-one`). */
export function leaseSecrets(): () => string {
  const pool = Buffer.alloc(POOL_BYTES)
  let used = POOL_BYTES
  return () => {
    if (used === POOL_BYTES) {
      randomFillSync(pool)
      used = 0
    }
    used += SECRET_BYTES
    return pool.toString('base64url', used - SECRET_BYTES, used)
  }
}

export function formatLeaseId(lease: LeaseRef): string {
  return `${lease.partition.toString(36)}-${lease.leaseNumber.toString(36)}-${lease.secret}`
}

/** Undefined if it is none. By hand: a regular expression is slow for large settles (bench `batches`). */
export function parseLeaseId(id: string): LeaseRef | undefined {
  const numberStart = id.indexOf('-') + 1
  const secretStart = id.indexOf('-', numberStart) + 1
  if (numberStart === 0 || secretStart === 0) return undefined
  const partition = readNumber(id, 0, numberStart - 1)
  const leaseNumber = readNumber(id, numberStart, secretStart - 1)
  const secret = id.slice(secretStart)
  if (partition === undefined || leaseNumber === undefined || !SECRET.test(secret)) return undefined
  return { partition, leaseNumber, secret }
}

const ZERO = 48
const NINE = 57
const A = 97
const Z = 122

/** Base 36, lower case, at least 1, no leading zeros: ids can be compared as text. */
function readNumber(text: string, start: number, end: number): number | undefined {
  if (start === end || end - start > LONGEST_NUMBER || text.charCodeAt(start) === ZERO) return undefined
  let value = 0
  for (let at = start; at < end; at += 1) {
    const code = text.charCodeAt(at)
    if (code >= ZERO && code <= NINE) value = value * 36 + (code - ZERO)
    else if (code >= A && code <= Z) value = value * 36 + (code - A + 10)
    else return undefined
  }
  return Number.isSafeInteger(value) ? value : undefined
}
