import { leaseMillis, type Policy } from '../../../handoff/rules/policy.ts'
import type { PullOrder } from '../../../handoff/store.ts'
import type { Names } from '../rows/names.ts'
import type { FrontPartition } from './known-front.ts'
import type { NotedLease } from './notes.ts'

/** The leases of partitions that were taken for some pulls: each has as many as it asked for, in the order of the hand-off. */
export function notedLeases(
  pulls: readonly PullOrder[],
  taken: readonly FrontPartition[],
  secrets: readonly string[],
  policy: Policy,
  names: Names,
): NotedLease[] {
  const orders = pulls.flatMap(({ instance, batch, key }) => {
    const holder = instance === null ? null : names.knownInstance(instance)
    return Array.from({ length: batch }, () => ({ holder, key }))
  })
  return taken.map(({ row }, at) => {
    const recordCount = row['record_count'] as number
    return {
      id: row['id'] as number,
      lane: { id: row['lane'] as number, task: row['task'] as number, level: row['level'] as number },
      recordCount,
      term: (row['term'] as number) + 1,
      secret: secrets[at] ?? '',
      holder: orders[at]?.holder ?? null,
      key: orders[at]?.key ?? null,
      lastsMillis: leaseMillis(policy, recordCount),
      place: row['place'] as string,
      rank: row['rank'] as string,
      stay: row['stay'] as number,
      fresh: row['fresh'] as boolean,
      refill: row['refill'] as boolean,
    }
  })
}
