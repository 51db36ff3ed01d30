import { packageVersion } from '../../report/machine.ts'
import { libraryContenders } from '../library-contender.ts'
import type { Peer } from '../peer.ts'

export const graphileWorker: Peer = {
  name: 'graphile-worker',
  async start(bench) {
    const database = await bench.database('graphile_worker')
    const name = `graphile-worker ${packageVersion('graphile-worker', import.meta.url)}`
    return libraryContenders(bench, {
      connect: { peer: 'graphile-worker', to: { url: database.url } },
      watched: [database.postmasterPid],
      afterFill: database.maintain,
      ways: [
        {
          way: 'plain',
          label: name,
          work: 'one by one',
          setting: `PostgreSQL, fsync per commit; concurrency ${bench.consumers}`,
          favoured:
            'no service in between; finished work is deleted; a consumer continues before its completion is written',
          hurt: 'a transaction for each claim and for each completion',
          firstGuess: 5_000,
        },
        {
          way: 'local queue',
          label: `${name}, local queue`,
          work: 'batches',
          setting: 'localQueue.size 500, completeJobBatchDelay 0 (its performance page)',
          favoured: 'claims 500 and completes many per statement; a crash leaves up to 500 locked for hours',
          hurt: 'still calls a function and sends events for each one',
          firstGuess: 20_000,
        },
      ],
    })
  },
}
