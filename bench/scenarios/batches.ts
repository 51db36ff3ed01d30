import type { Bench, Scenario } from '../harness/bench.ts'
import { startCompared } from '../harness/compared-servers.ts'
import { Backlog, handOffContender } from '../harness/hand-off-contender.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { barePairs, startBareSqlite } from '../limits/bare-contenders.ts'
import { quotient } from '../report/model.ts'

const CLIENTS = 16
const BATCH = 50

async function run(bench: Bench) {
  const { load, baton, backlog, nullServer } = await startCompared(bench)
  const bare = await startBareSqlite(bench.cleanUp)
  const bareBacklog = new Backlog((partitions) => bare.call('fill', { partitions }))
  const subject = { load, watched: [baton.pid], backlog, firstGuess: 60_000 }
  const work = { clients: CLIENTS, batch: BATCH }
  const twoRequests = handOffContender({
    ...subject,
    label: 'Baton, pull then settle',
    run: (client, seconds) => client.call('pullThenSettle', { ...work, urls: [baton.url], seconds }),
  })
  const oneRequest = handOffContender({
    ...subject,
    label: 'Baton, settle and pull in one request',
    run: (client, seconds) => client.call('settleAndPull', { ...work, urls: [baton.url], seconds }),
  })
  const nullLimit = handOffContender({
    load,
    watched: [nullServer.pid],
    firstGuess: 0,
    label: 'null server, pull then settle',
    run: (client, seconds) => client.call('pullThenSettle', { ...work, urls: [nullServer.url], seconds }),
  })
  const bareLimit = barePairs(bare, bareBacklog, BATCH)
  const bareShared = barePairs(bare, bareBacklog, BATCH * CLIENTS)
  const rows = await interleave(
    [twoRequests, oneRequest, nullLimit, bareLimit, bareShared],
    bench.sizes,
    bench.progress,
  )
  const row = (contender: Contender) => rowOf(rows, contender)
  return {
    rows,
    figures: [
      quotient('pull then settle ÷ bare loop', row(twoRequests), row(bareLimit), { atLeast: 0.6 }),
      quotient('one request ÷ bare loop', row(oneRequest), row(bareLimit), { atLeast: 0.6 }),
      quotient(
        'one request ÷ bare loop with all clients in one transaction',
        row(oneRequest),
        row(bareShared),
      ),
    ],
    notes: [`${CLIENTS} clients, ${BATCH} partitions per request.`],
  }
}

export const batches: Scenario = { name: 'batches', title: 'Batches of 50, SQLite', run }
