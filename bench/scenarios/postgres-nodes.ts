import type { Bench, Scenario } from '../harness/bench.ts'
import { nodesContender, startNodes, startPostgresCompared, urlsOf } from '../harness/postgres-compared.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { quotient } from '../report/model.ts'

const CLIENTS = 48

async function run(bench: Bench) {
  const compared = await startPostgresCompared(bench)
  const contenders: Contender[] = []
  for (const count of bench.sizes.nodes) {
    const nodes = await startNodes(bench, compared, count)
    contenders.push(
      nodesContender(compared, nodes, {
        label: `Baton, ${count} ${count === 1 ? 'node' : 'nodes'}`,
        firstGuess: 10_000,
        run: (client, seconds) =>
          client.call('pullThenSettle', { urls: urlsOf(nodes), clients: CLIENTS, seconds, batch: 1 }),
      }),
    )
  }
  const rows = await interleave(contenders, bench.sizes, bench.progress)
  const [one, ...more] = contenders
  if (!one) throw new Error('no nodes to measure')
  return {
    rows,
    figures: more.map((contender) =>
      quotient(`${contender.label} ÷ one`, rowOf(rows, contender), rowOf(rows, one), { atLeast: 1 }),
    ),
    notes: [
      `${CLIENTS} clients distributed over the nodes, pull and settle one by one; each number of nodes has a database of its own.`,
      'All nodes, the database and the client share the processors of this machine.',
    ],
  }
}

export const postgresNodes: Scenario = {
  name: 'postgres-nodes',
  title: 'One, two and three nodes on one PostgreSQL',
  run,
}
