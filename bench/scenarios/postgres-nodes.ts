import type { Bench, Scenario } from '../harness/bench.ts'
import { startHelper } from '../harness/helper-process.ts'
import {
  type Nodes,
  nodesContender,
  startNodes,
  startPostgresCompared,
  urlsOf,
} from '../harness/postgres-compared.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { startPlainProxy } from '../harness/services.ts'
import { quotient } from '../report/model.ts'
import { workerContender } from '../workers/contender.ts'
import type { WorkerCalls } from '../workers/typescript-process.ts'

const CLIENTS = 48

async function run(bench: Bench) {
  const compared = await startPostgresCompared(bench)
  const script = new URL('../workers/typescript-process.ts', import.meta.url)
  const client = startHelper<WorkerCalls>(script, bench.cleanUp)
  const dealtOut = (label: string, nodes: Nodes) => {
    const input = { urls: urlsOf(nodes), clients: CLIENTS, batch: 1 }
    return nodesContender(compared, nodes, {
      label,
      firstGuess: 10_000,
      run: (load, seconds) => load.call('pullThenSettle', { ...input, seconds }),
    })
  }
  const start = async (count: number) => {
    const nodes = await startNodes(bench, compared, count)
    const label = `Baton, ${count} ${count === 1 ? 'node' : 'nodes'}`
    const moving = workerContender({
      label: `${label}, Worker of the client`,
      // The last one is no leader, if there are others.
      input: { urls: urlsOf(nodes).toReversed() as [string, ...string[]], concurrency: CLIENTS },
      backlog: nodes.backlog,
      watched: [...nodes.nodes.map(({ pid }) => pid), compared.postgres.pid],
      work: (input) => client.call('worker', input),
    })
    return { nodes, raw: dealtOut(label, nodes), moving }
  }
  const one = await start(1)
  const [node] = one.nodes.nodes
  const proxy = await startPlainProxy(node.url, bench.cleanUp)
  const proxied = dealtOut('Baton, 1 node behind a plain proxy for half of the clients', {
    ...one.nodes,
    nodes: [node, proxy],
  })
  const more: Awaited<ReturnType<typeof start>>[] = []
  for (const count of bench.sizes.nodes) if (count > 1) more.push(await start(count))
  const contenders = [one, ...more].flatMap(({ raw, moving }) => [raw, moving])
  const rows = await interleave([...contenders, proxied], bench.sizes, bench.progress)
  const divided = (by: Contender, to: Contender, atLeast?: number) =>
    quotient(
      `${by.label} ÷ ${to.label}`,
      rowOf(rows, by),
      rowOf(rows, to),
      atLeast === undefined ? undefined : { atLeast },
    )
  return {
    rows,
    figures: [
      ...more.map(({ raw }) => divided(raw, one.raw, 0.6)),
      divided(proxied, one.raw),
      ...more.map(({ moving }) => divided(moving, one.moving, 0.95)),
    ],
    notes: [
      `${CLIENTS} clients distributed over the nodes, pull and settle one by one; each number of nodes has a database of its own.`,
      'The plain proxy passes requests on and does nothing else: two nodes cannot be faster than one behind it.',
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
