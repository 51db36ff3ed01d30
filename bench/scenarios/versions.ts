import { Client } from 'pg'
import { type Bench, type Scenario, startLoad } from '../harness/bench.ts'
import { temporaryFolder } from '../harness/clean-up.ts'
import { backlogOf } from '../harness/compared-servers.ts'
import { type Backlog, handOffContender } from '../harness/hand-off-contender.ts'
import type { Helper } from '../harness/helper-process.ts'
import { startPostgres } from '../harness/postgres.ts'
import { usageDuring } from '../harness/process-usage.ts'
import { type Contender, interleave, rowOf } from '../harness/rounds.ts'
import { type Service, startBaton } from '../harness/services.ts'
import type { LoadCalls } from '../load/load-process.ts'
import { type Figure, perProcessorSecond, quotient, type Row } from '../report/model.ts'

type Load = Helper<LoadCalls>

interface Version {
  readonly name: string
  readonly service: Service
  readonly backlog: Backlog
  /** The processes whose time counts. */
  readonly watched: readonly number[]
}

type Workload = (load: Load, version: Version) => Contender

function handOff(
  label: string,
  firstGuess: number,
  call: 'pullThenSettle' | 'settleAndPull',
  work: { clients: number; batch: number },
): Workload {
  return (load, { name, service, backlog, watched }) =>
    handOffContender({
      label: `${label}: ${name}`,
      load,
      watched,
      backlog,
      firstGuess,
      run: (client, seconds) => client.call(call, { ...work, urls: [service.url], seconds }),
    })
}

const callBacks =
  (descriptorsPerArray: number): Workload =>
  (load, { name, service, backlog, watched }) => ({
    label: `call-backs of ${descriptorsPerArray}: ${name}`,
    async measure(seconds) {
      const input = { url: service.url, descriptorsPerArray, seconds }
      const { result, usage } = await usageDuring(watched, () => load.call('callBacks', input))
      backlog.taken(-result.descriptors)
      return {
        rate: result.descriptors / result.seconds,
        p50Ms: result.latency.p50Ms,
        p99Ms: result.latency.p99Ms,
        serverCpuSeconds: usage.cpuSeconds,
        serverRssMb: usage.rssMb,
        clientCpuSeconds: result.clientCpuSeconds,
      }
    },
  })

const oneByOne = handOff('16 clients', 15_000, 'pullThenSettle', { clients: 16, batch: 1 })
const batches = handOff('batches of 50', 60_000, 'settleAndPull', { clients: 16, batch: 50 })
const handOffs: readonly Workload[] = [
  oneByOne,
  handOff('64 clients', 15_000, 'pullThenSettle', { clients: 64, batch: 1 }),
  handOff('settle and pull', 25_000, 'settleAndPull', { clients: 16, batch: 1 }),
  batches,
]

/** The main.ts of the checkout to compare with. */
function otherService(): string {
  const main = process.env['BENCH_BEFORE']
  if (main === undefined) throw new Error('BENCH_BEFORE must name the main.ts of the other checkout')
  return main
}

/** Both versions, each with a store of its own. */
type Versions = readonly [Version, Version]

/** Measures each workload on both versions, in one run. */
async function compare(
  bench: Bench,
  load: Load,
  versionsOf: ReadonlyMap<Workload, Versions>,
  others: readonly { readonly contender: Contender; readonly of: Workload; readonly goal: number }[] = [],
) {
  const pairs = [...versionsOf].map(([workload, [before, now]]) => ({
    workload,
    before: workload(load, before),
    now: workload(load, now),
  }))
  const contenders = [
    ...pairs.flatMap((pair) => [pair.before, pair.now]),
    ...others.map((one) => one.contender),
  ]
  const rows = await interleave(contenders, bench.sizes, bench.progress)
  const row = (contender: Contender) => rowOf(rows, contender)
  const figures = pairs.flatMap((pair) => against(row(pair.now), row(pair.before), 'before', 0.95))
  for (const { contender, of, goal } of others) {
    const pair = pairs.find(({ workload }) => workload === of)
    if (pair !== undefined) figures.push(...against(row(contender), row(pair.now), 'now', goal))
  }
  return { rows, figures, notes: ['"Before" is the service that BENCH_BEFORE names.'] }
}

function against(subject: Row, other: Row, name: string, atLeast: number): Figure[] {
  const label = `${subject.label} ÷ ${name}`
  return [
    quotient(label, subject, other, { atLeast }),
    perProcessorSecond(`${label}, per processor second`, subject, other, { atLeast }),
  ]
}

/** Call-backs have stores of their own: what they leave would be the backlog of the others. */
async function startVersions(
  start: (name: string, main?: string) => Promise<Version>,
  { sizes }: Bench,
): Promise<ReadonlyMap<Workload, Versions>> {
  const forHandOffs = [await start('before', otherService()), await start('now')] as const
  const forCallBacks = [await start('before', otherService()), await start('now')] as const
  return new Map([
    ...handOffs.map((workload) => [workload, forHandOffs] as const),
    [callBacks(sizes.smallCallBack), forCallBacks],
  ])
}

async function onSqlite(bench: Bench) {
  const load = startLoad(bench)
  const start = async (name: string, main?: string): Promise<Version> => {
    const service = await startBaton(
      { dataFolder: temporaryFolder('data', bench.cleanUp), main },
      bench.cleanUp,
    )
    return { name, service, backlog: backlogOf(load, service.url), watched: [service.pid] }
  }
  return compare(bench, load, await startVersions(start, bench))
}

async function onPostgres(bench: Bench) {
  const load = startLoad(bench)
  const postgres = await startPostgres(bench.cleanUp)
  let databases = 0
  const start = async (name: string, main?: string): Promise<Version & { databaseUrl: string }> => {
    const databaseUrl = await postgres.createDatabase(`baton_${databases++}`)
    const dataFolder = temporaryFolder('data', bench.cleanUp)
    const service = await startBaton({ dataFolder, databaseUrl, main }, bench.cleanUp)
    const watched = [service.pid, postgres.pid]
    return { name, service, backlog: backlogOf(load, service.url), watched, databaseUrl }
  }
  const versions = await startVersions(start, bench)
  const backedUp = await start('now, while an old snapshot is open')
  await openSnapshot(backedUp.databaseUrl, bench)
  const others = [oneByOne, batches].map((of) => ({ contender: of(load, backedUp), of, goal: 0.9 }))
  return compare(bench, load, versions, others)
}

/** As a backup does: rows that are replaced meanwhile cannot be vacuumed. */
async function openSnapshot(databaseUrl: string, { cleanUp }: Bench): Promise<void> {
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  cleanUp.add(() => client.end())
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  await client.query('SELECT count(*) FROM pg_class')
}

/** Only by name: they need another checkout. */
export const versionScenarios: readonly Scenario[] = [
  { name: 'versions', title: 'This version and an earlier one, SQLite', run: onSqlite },
  { name: 'postgres-versions', title: 'This version and an earlier one, PostgreSQL', run: onPostgres },
]
