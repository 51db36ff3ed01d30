import { formatLeaseId } from '../../../handoff/rules/lease-id.ts'
import { leaseMillis, type Policy } from '../../../handoff/rules/policy.ts'
import type { HandedOut, PullOrder, PullResult } from '../../../handoff/store.ts'
import { handedOutOf, type RowNames } from '../rows/handed-out-row.ts'
import type { Row } from '../session/statement.ts'

/** The row of a partition that was leased, with the names that it refers to. */
export interface Given {
  readonly row: Row
  readonly names: RowNames
}

export interface SharedOut {
  readonly results: PullResult[]
  readonly earliestDueAt: number | null
}

/**
 * What one claim gave, dealt to the pulls that it was for: each has as many of the secrets as it asked for
 * partitions, in the order of the hand-off, and its instance is written down as the holder of those.
 */
export function sharedOut(
  pulls: readonly PullOrder[],
  secrets: readonly string[],
  given: readonly Given[],
  policy: Policy,
  now: number,
): SharedOut {
  const bySecret = new Map(given.map((one) => [one.row['secret'], one]))
  let earliestDueAt: number | null = null
  let first = 0
  const results = pulls.map(({ batch }) => {
    const own = secrets.slice(first, first + batch)
    first += batch
    const partitions = own.flatMap((secret) => {
      const one = bySecret.get(secret)
      if (one === undefined) return []
      const dueAt = now + leaseMillis(policy, one.row['record_count'] as number)
      if (earliestDueAt === null || dueAt < earliestDueAt) earliestDueAt = dueAt
      return handedOut(one, dueAt, now)
    })
    return { partitions, repeated: false }
  })
  return { results, earliestDueAt }
}

function handedOut({ row, names }: Given, expiresAt: number, now: number): HandedOut {
  const secret = row['secret'] as string
  const leaseId = formatLeaseId({ partition: row['id'] as number, term: row['term'] as number, secret })
  return handedOutOf(row, names, leaseId, expiresAt, now)
}
