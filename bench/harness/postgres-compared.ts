import type { BarePostgresCalls } from '../limits/bare-postgres.ts'
import type { LoadCalls } from '../load/load-process.ts'
import { type Bench, startLoad } from './bench.ts'
import { freePort, temporaryFolder } from './clean-up.ts'
import { backlogOf } from './compared-servers.ts'
import { Backlog, type HandOffContender, handOffContender } from './hand-off-contender.ts'
import { type Helper, startHelper } from './helper-process.ts'
import { type RunningPostgres, startPostgres } from './postgres.ts'
import type { Contender } from './rounds.ts'
import { type Service, startBaton } from './services.ts'

/** Baton nodes on one database, and their shared backlog. */
export interface Nodes {
  nodes: readonly [Service, ...Service[]]
  backlog: Backlog
}

export interface PostgresCompared {
  load: Helper<LoadCalls>
  postgres: RunningPostgres
}

export async function startPostgresCompared(bench: Bench): Promise<PostgresCompared> {
  const load = startLoad(bench)
  bench.progress.say('starting PostgreSQL')
  return { load, postgres: await startPostgres(bench.cleanUp) }
}

/** Starts the given number of nodes on a new database. */
export async function startNodes(
  bench: Bench,
  { load, postgres }: PostgresCompared,
  count: number,
): Promise<Nodes> {
  const databaseUrl = await postgres.createDatabase(`baton_${count}`)
  const start = async () => {
    const port = await freePort()
    const dataFolder = temporaryFolder('data', bench.cleanUp)
    const advertised = { BATON_ADVERTISE_URL: `http://127.0.0.1:${port}` }
    return startBaton({ dataFolder, databaseUrl, port }, bench.cleanUp, advertised)
  }
  const nodes: [Service, ...Service[]] = [await start()]
  while (nodes.length < count) nodes.push(await start())
  return { nodes, backlog: backlogOf(load, nodes[0].url) }
}

/** The same hand-off contender as on SQLite. PostgreSQL's processor time counts as the server's. */
export function nodesContender(
  { load, postgres }: PostgresCompared,
  { nodes, backlog }: Nodes,
  contender: Pick<HandOffContender, 'label' | 'firstGuess' | 'run'>,
): Contender {
  const watched = [...nodes.map((node) => node.pid), postgres.pid]
  return handOffContender({ ...contender, load, backlog, watched })
}

/** The nodes' addresses, in the form that the load client expects. */
export function urlsOf({ nodes: [first, ...others] }: Nodes): [string, ...string[]] {
  return [first.url, ...others.map((node) => node.url)]
}

export async function startHandWritten(
  bench: Bench,
  { postgres }: PostgresCompared,
  connections: number,
): Promise<{ bare: Helper<BarePostgresCalls>; backlog: Backlog }> {
  const url = await postgres.createDatabase('hand_written')
  const script = new URL('../limits/bare-postgres.ts', import.meta.url)
  const bare = startHelper<BarePostgresCalls>(script, bench.cleanUp)
  await bare.call('open', { url, connections })
  return { bare, backlog: new Backlog((partitions) => bare.call('fill', { partitions })) }
}
