import { libraryContenders } from '../library-contender.ts'
import type { Peer } from '../peer.ts'
import { startNats } from '../servers/nats.ts'

export const nats: Peer = {
  name: 'nats',
  async start(bench) {
    const server = await startNats(bench.cleanUp)
    const name = `NATS JetStream ${server.version}`
    const storage = server.syncsAlways
      ? 'file storage, sync_interval always'
      : 'file storage; this version cannot sync every write'
    const favoured = server.syncsAlways
      ? 'one connection for all consumers'
      : 'an acknowledgement is not on disk for up to two minutes; one connection for all consumers'
    const hurt = 'no levels within a stream'
    return libraryContenders(bench, {
      connect: { peer: 'nats', to: { port: server.port } },
      watched: [server.pid],
      ways: [
        {
          way: 'one by one',
          label: `${name}, next and confirmed ack`,
          work: 'one by one',
          setting: `work-queue stream, ${storage}`,
          favoured,
          hurt,
          firstGuess: 10_000,
        },
        {
          way: 'consume, confirmed',
          label: `${name}, consume, confirmed acks`,
          work: 'batches',
          setting: `consume with ${bench.consumers * bench.batch} buffered, ${storage}`,
          favoured,
          hurt,
          firstGuess: 25_000,
        },
        {
          way: 'consume',
          label: `${name}, consume`,
          work: 'batches',
          setting: `consume with ${bench.consumers * bench.batch} buffered, ${storage}`,
          favoured: `acks are sent, not confirmed: a lost one is delivered again; ${favoured}`,
          hurt,
          firstGuess: 60_000,
        },
      ],
    })
  },
}
