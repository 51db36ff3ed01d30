import { BatonClient, type PartitionDescriptor, Worker } from '@baton/client'
import pg from 'pg'
import { readTotals } from './totals.ts'

/** As many partitions are read at the same time with Baton and without. */
const CONCURRENCY = 2

/** Reads the same partitions without Baton and with it. Returns the seconds of both. */
export async function compare(
  databaseUrl: string,
  baton: string,
  descriptors: readonly PartitionDescriptor[],
) {
  const database = new pg.Pool({ connectionString: databaseUrl, max: CONCURRENCY })
  const read = (partition: PartitionDescriptor) => readTotals(database, partition)
  try {
    const without = await secondsOf(async () => {
      const left = [...descriptors]
      const loop = async () => {
        for (let next = left.shift(); next !== undefined; next = left.shift()) await read(next)
      }
      await Promise.all(Array.from({ length: CONCURRENCY }, loop))
    })
    // A task of its own with the same partitions: the first one is sealed and done.
    const taskId = 'comparison'
    const nameOf = (name: string) => name.replace(/^.*(?=-\d+-\d+$)/, taskId)
    const originals = new Map(descriptors.map((one) => [nameOf(one.partition_name), one]))
    const again = [...originals].map(([partition_name, one]) => ({ ...one, taskId, partition_name }))
    const client = new BatonClient(baton)
    await client.callBack(again)
    const through = await secondsOf(() =>
      new Worker(
        client,
        async ({ partition_name }) => {
          await read(originals.get(partition_name) as PartitionDescriptor)
        },
        { concurrency: CONCURRENCY, prefetch: CONCURRENCY, tasks: [taskId], untilIdle: true },
      ).run(),
    )
    return { without, through }
  } finally {
    await database.end()
  }
}

async function secondsOf(run: () => Promise<unknown>): Promise<number> {
  const begun = performance.now()
  await run()
  return (performance.now() - begun) / 1000
}
