import { type BatonClient, type PartitionDescriptor, Worker } from '@baton/client'
import pg from 'pg'
import { callBack } from './produce.ts'
import { readTotals } from './totals.ts'

/** As many partitions are read at the same time with Baton and without. */
const CONCURRENCY = 2
/** So that nothing that changes meanwhile, such as the caches of the database, counts for one side only. */
const ROUNDS = 4

/** Reads the same partitions without Baton and with it, in turns. Returns the seconds of both. */
export async function compare(
  databaseUrl: string,
  client: BatonClient,
  descriptors: readonly PartitionDescriptor[],
) {
  const database = new pg.Pool({ connectionString: databaseUrl, max: CONCURRENCY })
  const read = (partition: PartitionDescriptor) => readTotals(database, partition)

  const readWithout = async (some: readonly PartitionDescriptor[]) => {
    const left = some.values()
    const loop = async () => {
      for (const partition of left) await read(partition)
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, loop))
  }
  const readThrough = (taskId: string, originals: ReadonlyMap<string, PartitionDescriptor>) =>
    new Worker(
      client,
      async ({ partition_name }) => {
        await read(originals.get(partition_name) as PartitionDescriptor)
      },
      { concurrency: CONCURRENCY, prefetch: CONCURRENCY, tasks: [taskId], untilIdle: true },
    ).run()

  let without = 0
  let through = 0
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      // A task of its own: that of the example is sealed and done.
      const taskId = `comparison-${round}`
      const some = descriptors.filter((_, at) => at % ROUNDS === round)
      const nameOf = (name: string) => name.replace(/^.*(?=-\d+-\d+$)/, taskId)
      const originals = new Map(some.map((one) => [nameOf(one.partition_name), one]))
      await callBack(
        client,
        [...originals].map(([partition_name, one]) => ({ ...one, taskId, partition_name })),
      )
      const sides = [
        async () => {
          without += await secondsOf(() => readWithout(some))
        },
        async () => {
          through += await secondsOf(() => readThrough(taskId, originals))
        },
      ]
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) await side()
    }
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
