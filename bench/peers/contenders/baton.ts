import { startLoad } from '../../harness/bench.ts'
import { temporaryFolder } from '../../harness/clean-up.ts'
import { Backlog, handOffContender } from '../../harness/hand-off-contender.ts'
import { type Service, startBaton } from '../../harness/services.ts'
import type { Peer, PeerContender, PeersBench } from '../peer.ts'

const GATHERS = 'requests that arrive together share a transaction'
const KEEPS = 'finished work is kept and counted, order is fair between tasks'

interface Measured {
  peer: string
  name: string
  setting: string
  hurt: string
  service: Service
  watched: readonly number[]
  maintain?(): Promise<void>
}

function contenders(
  bench: PeersBench,
  { peer, name, setting, hurt, service, watched, maintain }: Measured,
): PeerContender[] {
  const load = startLoad(bench)
  const backlog = new Backlog(async (partitions) => {
    await load.call('fill', { url: service.url, partitions })
    await maintain?.()
  })
  const { consumers: clients, batch } = bench
  const urls: [string] = [service.url]
  const asked = {
    setting: `${setting}; a connection per consumer`,
    favoured: `hand-written HTTP client; ${GATHERS}`,
    hurt,
  }
  const of = (
    way: Pick<PeerContender, 'id' | 'work' | 'label'> & Partial<PeerContender>,
    firstGuess: number,
    run: Parameters<typeof handOffContender>[0]['run'],
  ): PeerContender => ({
    ...handOffContender({ label: way.label, load, watched, backlog, firstGuess, run }),
    ...asked,
    ...way,
  })
  return [
    of({ id: `${peer}/one by one`, work: 'one by one', label: name }, 15_000, (client, seconds) =>
      client.call('pullThenSettle', { urls, clients, seconds, batch: 1 }),
    ),
    of(
      {
        id: `${peer}/worker`,
        work: 'one by one',
        label: `${name}, a Worker of its library`,
        setting: `${setting}; one Worker, concurrency ${clients}`,
        favoured: 'what ends together is settled in one request, which brings the next',
      },
      15_000,
      (client, seconds) => client.call('oneWorker', { url: service.url, concurrency: clients, seconds }),
    ),
    of(
      { id: `${peer}/one exchange`, work: 'one exchange', label: `${name}, settle and pull` },
      25_000,
      (client, seconds) => client.call('settleAndPull', { urls, clients, seconds, batch: 1 }),
    ),
    of(
      { id: `${peer}/batches`, work: 'batches', label: `${name}, batches of ${batch}` },
      50_000,
      (client, seconds) => client.call('settleAndPull', { urls, clients, seconds, batch }),
    ),
  ]
}

export const batonOnSqlite: Peer = {
  name: 'baton-sqlite',
  async start(bench) {
    const dataFolder = temporaryFolder('data', bench.cleanUp)
    const service = await startBaton({ dataFolder }, bench.cleanUp)
    return contenders(bench, {
      peer: 'baton-sqlite',
      name: 'Baton on SQLite',
      setting: 'defaults: WAL, synchronous=FULL',
      hurt: `HTTP and JSON for each exchange; ${KEEPS}`,
      service,
      watched: [service.pid],
    })
  },
}

export const batonOnPostgres: Peer = {
  name: 'baton-postgres',
  async start(bench) {
    const { url, postmasterPid, maintain } = await bench.database('baton')
    const dataFolder = temporaryFolder('data', bench.cleanUp)
    const service = await startBaton({ dataFolder, databaseUrl: url }, bench.cleanUp)
    return contenders(bench, {
      peer: 'baton-postgres',
      name: 'Baton on PostgreSQL',
      setting: 'defaults, one node; PostgreSQL, fsync per commit',
      hurt: `a service between consumers and database: HTTP and JSON for each exchange; ${KEEPS}`,
      service,
      watched: [service.pid, postmasterPid],
      maintain,
    })
  },
}
