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

const CLIENTS = [16, 64] as const

async function run(bench: Bench) {
  const compared = await startPostgresCompared(bench)
  const baton = await startNodes(bench, compared, 1)
  const byHand = await startHandWritten(bench, compared, Math.max(...CLIENTS))
  const groups = CLIENTS.map((clients) => ({
    clients,
    baton: nodesContender(compared, baton, {
      label: `Baton, one node, ${clients} clients`,
      firstGuess: 10_000,
      run: (client, seconds) =>
        client.call('pullThenSettle', { urls: urlsOf(baton), clients, seconds, batch: 1 }),
    }),
    byHand: handWrittenPairs(byHand.bare, compared.postgres.pid, byHand.backlog, {
      consumers: clients,
      batch: 1,
    }),
  }))
  const contenders = groups.flatMap((group) => [group.baton, group.byHand])
  const rows = await interleave(contenders, bench.sizes, bench.progress)
  return {
    rows,
    figures: groups.map((group) =>
      quotient(
        `${group.clients} clients: Baton ÷ hand-written`,
        rowOf(rows, group.baton),
        rowOf(rows, group.byHand),
        { atLeast: 1.5 },
      ),
    ),
    notes: [
      'The server processor time is that of Baton and PostgreSQL together; of the hand-written loop, of PostgreSQL.',
      'For pg-boss and graphile-worker, see peers/results.md.',
    ],
  }
}

export const postgresOneByOne: Scenario = {
  name: 'postgres-one-by-one',
  title: 'Pull and settle one by one, PostgreSQL',
  run,
}
