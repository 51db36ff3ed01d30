import { libraryContenders } from '../library-contender.ts'
import type { Peer } from '../peer.ts'
import { startBeanstalkd } from '../servers/beanstalkd.ts'

export const beanstalkd: Peer = {
  name: 'beanstalkd',
  async start(bench) {
    const server = await startBeanstalkd(bench.cleanUp)
    const about = {
      setting: '-b, -f 0 (fsync on every write); a connection per consumer',
      hurt: 'one thread syncs each write for itself; no batches',
      firstGuess: 15_000,
    }
    const favoured =
      'C, a protocol of short lines, hand-written client; a reservation is not written to its log'
    return libraryContenders(bench, {
      connect: { peer: 'beanstalkd', to: { port: server.port } },
      watched: [server.pid],
      ways: [
        {
          ...about,
          favoured,
          way: 'one by one',
          label: `beanstalkd ${server.version}`,
          work: 'one by one',
        },
        {
          ...about,
          favoured: `${favoured}; delete and reserve in one write`,
          way: 'pipelined',
          label: `beanstalkd ${server.version}, pipelined`,
          work: 'one exchange',
        },
      ],
    })
  },
}
