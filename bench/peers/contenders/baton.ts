import { Backlog } from '../../harness/backlog.ts'
import { type Bench, Skipped, startLoad } from '../../harness/bench.ts'
import { handOffContender } from '../../harness/hand-off-contender.ts'
import { batonIsThere, type Service, startBaton } from '../../harness/services.ts'
import { temporaryFolder } from '../../harness/temporary-folder.ts'
import type { Peer, PeerContender, PeersBench } from '../peer.ts'

async function started(bench: Bench, databaseUrl?: string): Promise<Service> {
  if (!batonIsThere()) throw new Skipped('packages/server/src/main.ts is not there')
  const dataFolder = temporaryFolder('data', bench.cleanUp)
  try {
    return await startBaton(
      { dataFolder, ...(databaseUrl === undefined ? {} : { databaseUrl }) },
      bench.cleanUp,
    )
  } catch (error) {
    throw new Skipped(error instanceof Error ? error.message : String(error))
  }
}

interface Measured {
  peer: string
  name: string
  setting: string
  service: Service
  watched: readonly number[]
  tidy?(): Promise<void>
}

function contenders(
  bench: PeersBench,
  { peer, name, setting, service, watched, tidy }: Measured,
): PeerContender[] {
  const load = startLoad(bench)
  const backlog = new Backlog(async (partitions) => {
    await load.call('fill', { url: service.url, partitions })
    await tidy?.()
  })
  const { consumers: clients, batch } = bench
  const urls: [string] = [service.url]
  const about = {
    setting,
    favoured: 'lean HTTP client over raw sockets, a connection per consumer',
    hurt: 'a service in between: HTTP and JSON for each exchange',
  }
  const of = (
    work: PeerContender['work'],
    label: string,
    firstGuess: number,
    run: Parameters<typeof handOffContender>[0]['run'],
  ): PeerContender => ({
    ...handOffContender({ label, load, watched, backlog, firstGuess, run }),
    ...about,
    id: `${peer}/${work}`,
    work,
  })
  return [
    of('one by one', name, 15_000, (client, seconds) =>
      client.call('pullThenSettle', { urls, clients, seconds, batch: 1 }),
    ),
    of('one exchange', `${name}, settle and pull`, 25_000, (client, seconds) =>
      client.call('settleAndPull', { urls, clients, seconds, batch: 1 }),
    ),
    of('batches', `${name}, batches of ${batch}`, 50_000, (client, seconds) =>
      client.call('settleAndPull', { urls, clients, seconds, batch }),
    ),
  ]
}

export const batonOnSqlite: Peer = {
  name: 'baton-sqlite',
  async start(bench) {
    const service = await started(bench)
    return contenders(bench, {
      peer: 'baton-sqlite',
      name: 'Baton on SQLite',
      setting: 'defaults: WAL, synchronous=FULL',
      service,
      watched: [service.pid],
    })
  },
}

export const batonOnPostgres: Peer = {
  name: 'baton-postgres',
  async start(bench) {
    const { url, postmasterPid, tidy } = await bench.database('baton')
    const service = await started(bench, url)
    return contenders(bench, {
      peer: 'baton-postgres',
      name: 'Baton on PostgreSQL',
      setting: 'defaults, one node; PostgreSQL, fsync per commit',
      service,
      watched: [service.pid, postmasterPid],
      tidy,
    })
  },
}
