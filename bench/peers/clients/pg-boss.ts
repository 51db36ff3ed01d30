import { PgBoss } from 'pg-boss'
import { consumeInLoops, fillInGroups, type PeerClient } from '../peer-client.ts'

const NAME = 'partitions'

export async function connectPgBoss({ url }: { url: string }): Promise<PeerClient> {
  // Without supervision and schedules, so that no maintenance runs during a measurement.
  const boss = new PgBoss({ connectionString: url, max: 16, supervise: false, schedule: false })
  boss.on('error', () => {})
  await boss.start()
  await boss.createQueue(NAME)
  return {
    fill: (partitions) =>
      fillInGroups(partitions, 2_000, (group) =>
        boss.insert(
          NAME,
          group.map((data) => ({ data })),
        ),
      ),
    consume: (input) =>
      consumeInLoops(input, async () => {
        const jobs = await boss.fetch(NAME, { batchSize: input.way === 'batches' ? input.batch : 1 })
        const [first] = jobs
        if (!first) return 0
        await boss.complete(NAME, jobs.length === 1 ? first.id : jobs.map((job) => job.id))
        return jobs.length
      }),
  }
}
