import type { BatonClient } from '@baton/client'

/** Pulls this many partitions and settles each. */
export async function workThrough(
  client: BatonClient,
  count: number,
  settlement: { outcome: 'done'; records?: number } | { outcome: 'failed'; reason: string; final?: boolean },
): Promise<void> {
  const { partitions } = await client.pull({ batch: count })
  await client.settle(partitions.map(({ lease }) => ({ leaseId: lease?.id ?? '', ...settlement })))
}
