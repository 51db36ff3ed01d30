import { Backlog } from '../../harness/hand-off-contender.ts'
import { startHelper } from '../../harness/helper-process.ts'
import { handWrittenPairs } from '../../limits/bare-contenders.ts'
import type { BarePostgresCalls } from '../../limits/bare-postgres.ts'
import type { Peer, PeerContender } from '../peer.ts'

export const handWritten: Peer = {
  name: 'hand-written',
  async start(bench) {
    const database = await bench.database('hand_written')
    const script = new URL('../../limits/bare-postgres.ts', import.meta.url)
    const loop = startHelper<BarePostgresCalls>(script, bench.cleanUp)
    await loop.call('open', { url: database.url, connections: bench.consumers })
    const backlog = new Backlog(async (partitions) => {
      await loop.call('fill', { partitions })
      await database.maintain()
    })
    const way = (work: PeerContender['work'], batch: number): PeerContender => ({
      ...handWrittenPairs(loop, database.postmasterPid, backlog, { consumers: bench.consumers, batch }),
      id: `hand-written/${work}`,
      work,
      setting: `PostgreSQL, fsync per commit; SKIP LOCKED, prepared statements, pool of ${bench.consumers}`,
      favoured: 'no service in between; no retries, no expiry, no progress, no fairness',
      hurt: 'each consumer commits for itself; finished work is kept',
    })
    return [way('one by one', 1), way('batches', bench.batch)]
  },
}
