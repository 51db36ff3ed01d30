import type { Bench, Scenario } from '../harness/bench.ts'
import { startHelper } from '../harness/helper-process.ts'
import { nodesContender, startNodes, startPostgresCompared, urlsOf } from '../harness/postgres-compared.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { quotient } from '../report/model.ts'
import { workerContender } from '../workers/contender.ts'
import type { WorkerCalls } from '../workers/typescript-process.ts'

const CLIENTS = 48

async function run(bench: Bench) {
  const compared = await startPostgresCompared(bench)
  const script = new URL('../workers/typescript-process.ts', import.meta.url)
  const client = startHelper<WorkerCalls>(script, bench.cleanUp)
  const raw: Contender[] = []
  const moving: Contender[] = []
  for (const count of bench.sizes.nodes) {
    const nodes = await startNodes(bench, compared, count)
    const label = `Baton, ${count} ${count === 1 ? 'node' : 'nodes'}`
    const urls = urlsOf(nodes)
    raw.push(
      nodesContender(compared, nodes, {
        label,
        firstGuess: 10_000,
        run: (load, seconds) => load.call('pullThenSettle', { urls, clients: CLIENTS, seconds, batch: 1 }),
      }),
    )
    moving.push(
      workerContender({
        label: `${label}, Worker of the client`,
        // The last one is no leader, if there are others.
        input: { urls: urls.toReversed() as typeof urls, concurrency: CLIENTS },
        backlog: nodes.backlog,
        watched: [...nodes.nodes.map(({ pid }) => pid), compared.postgres.pid],
        work: (input) => client.call('worker', input),
      }),
    )
  }
  const rows = await interleave([...raw, ...moving], bench.sizes, bench.progress)
  const comparedWithOne = ([one, ...more]: readonly Contender[], atLeast: number) =>
    more.map((contender) => {
      if (one === undefined) throw new Error('no nodes to measure')
      return quotient(`${contender.label} ÷ one`, rowOf(rows, contender), rowOf(rows, one), { atLeast })
    })
  return {
    rows,
    figures: [...comparedWithOne(raw, 0.6), ...comparedWithOne(moving, 0.95)],
    notes: [
      `${CLIENTS} clients distributed over the nodes, pull and settle one by one; each number of nodes has a database of its own.`,
      'The client asks a node that does not lead first, and moves to the leader.',
      'All nodes, the database and the client share the processors of this machine.',
    ],
  }
}

export const postgresNodes: Scenario = {
  name: 'postgres-nodes',
  title: 'One, two and three nodes on one PostgreSQL',
  run,
}
