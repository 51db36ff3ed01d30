import { packageVersion } from '../../report/machine.ts'
import { libraryContenders } from '../library-contender.ts'
import type { Peer } from '../peer.ts'
import { startRedis } from '../servers/redis.ts'

export const bullMq: Peer = {
  name: 'bullmq',
  async start(bench) {
    const redis = await startRedis(bench.cleanUp)
    return libraryContenders(bench, {
      connect: { peer: 'bullmq', to: { port: redis.port } },
      watched: [redis.pid],
      ways: [
        {
          way: 'one by one',
          label: `BullMQ ${packageVersion('bullmq', import.meta.url)} on Redis ${redis.version}`,
          work: 'one by one',
          setting: `appendonly yes, appendfsync always; one Worker, concurrency ${bench.consumers}`,
          favoured:
            'finishing one fetches the next in the same script; finished work is removed; all in memory',
          hurt: 'no batches without its paid edition',
          firstGuess: 8_000,
        },
      ],
    })
  },
}
