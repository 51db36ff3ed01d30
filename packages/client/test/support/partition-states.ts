import type { BatonClient, PartitionRow } from '@baton/client'

/** All partitions of a task as the service sees them, by index. */
export async function rowsOf(client: BatonClient, taskId: string): Promise<PartitionRow[]> {
  const rows: PartitionRow[] = []
  let cursor: string | undefined
  do {
    const page = await client.partitions(taskId, { limit: 1000, cursor })
    rows.push(...page.partitions)
    cursor = page.next ?? undefined
  } while (cursor !== undefined)
  return rows
}

export async function statesOf(client: BatonClient, taskId: string): Promise<string[]> {
  return (await rowsOf(client, taskId)).map(({ state }) => state)
}
