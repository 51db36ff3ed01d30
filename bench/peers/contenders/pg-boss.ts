import { packageVersion } from '../../report/machine.ts'
import { libraryContenders } from '../library-contender.ts'
import type { Peer } from '../peer.ts'

export const pgBoss: Peer = {
  name: 'pg-boss',
  async start(bench) {
    const database = await bench.database('pg_boss')
    const name = `pg-boss ${packageVersion('pg-boss', import.meta.url)}`
    const about = {
      setting: 'PostgreSQL, fsync per commit; fetch and complete, pool of 16; supervision and schedules off',
      hurt: 'its statements are parsed and planned again each time; finished work is kept',
    }
    return libraryContenders(bench, {
      connect: { peer: 'pg-boss', to: { url: database.url } },
      watched: [database.postmasterPid],
      afterFill: database.maintain,
      ways: [
        {
          ...about,
          way: 'one by one',
          label: name,
          work: 'one by one',
          favoured: 'no service in between, no levels',
          firstGuess: 2_000,
        },
        {
          ...about,
          way: 'batches',
          label: `${name}, batches of ${bench.batch}`,
          work: 'batches',
          favoured: 'no service in between, no levels',
          firstGuess: 10_000,
        },
      ],
    })
  },
}
