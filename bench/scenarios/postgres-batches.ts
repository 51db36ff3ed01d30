import type { Bench, Scenario } from '../harness/bench.ts'
import {
  nodesContender,
  startHandWritten,
  startNodes,
  startPostgresCompared,
  urlsOf,
} from '../harness/postgres-compared.ts'
import { interleave, rowOf } from '../harness/rounds.ts'
import { handWrittenPairs } from '../limits/bare-contenders.ts'
import { quotient } from '../report/model.ts'

const CLIENTS = 16
const BATCH = 50

async function run(bench: Bench) {
  const compared = await startPostgresCompared(bench)
  const baton = await startNodes(bench, compared, 1)
  const byHand = await startHandWritten(bench, compared, CLIENTS)
  const work = { urls: urlsOf(baton), clients: CLIENTS, batch: BATCH }
  const twoRequests = nodesContender(compared, baton, {
    label: 'Baton, one node, pull then settle',
    firstGuess: 30_000,
    run: (client, seconds) => client.call('pullThenSettle', { ...work, seconds }),
  })
  const oneRequest = nodesContender(compared, baton, {
    label: 'Baton, one node, settle and pull in one request',
    firstGuess: 30_000,
    run: (client, seconds) => client.call('settleAndPull', { ...work, seconds }),
  })
  const limit = handWrittenPairs(byHand.bare, compared.postgres.pid, byHand.backlog, {
    consumers: CLIENTS,
    batch: BATCH,
  })
  const rows = await interleave([twoRequests, oneRequest, limit], bench.sizes, bench.progress)
  return {
    rows,
    figures: [twoRequests, oneRequest].map((subject) =>
      quotient(`${subject.label} ÷ hand-written`, rowOf(rows, subject), rowOf(rows, limit), { atLeast: 0.8 }),
    ),
    notes: [`${CLIENTS} clients, ${BATCH} partitions per request.`],
  }
}

export const postgresBatches: Scenario = {
  name: 'postgres-batches',
  title: 'Batches of 50, PostgreSQL',
  run,
}
