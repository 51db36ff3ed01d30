/**
 * A lease id names its partition and the number of the term, so that settling needs no index of
 * its own, and carries 96 random bits, so that nobody can settle what was not handed to them.
 */
export interface LeaseRef {
  readonly partition: number
  readonly term: number
  readonly secret: string
}

/** No leading zeros: a lease has one spelling, so ids may be compared as text. */
const FORM = /^([1-9a-z][0-9a-z]{0,10})-([1-9a-z][0-9a-z]{0,10})-([A-Za-z0-9_-]{16})$/

export const SECRET_BYTES = 12

export function formatLeaseId(lease: LeaseRef): string {
  return `${lease.partition.toString(36)}-${lease.term.toString(36)}-${lease.secret}`
}

/** Whoever sends something else never got it from here. */
export function parseLeaseId(id: string): LeaseRef | undefined {
  const match = FORM.exec(id)
  if (match === null) return undefined
  const [, partition = '', term = '', secret = ''] = match
  const ref = { partition: Number.parseInt(partition, 36), term: Number.parseInt(term, 36), secret }
  return Number.isSafeInteger(ref.partition) && Number.isSafeInteger(ref.term) ? ref : undefined
}
