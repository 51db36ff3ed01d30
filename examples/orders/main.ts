/**
 * The whole story with one command: makes a table of orders, splits it, calls the partitions back, works on them in
 * TypeScript and Python while one worker is killed and one is stopped for longer than its lease, and proves that
 * every record was counted once.
 *
 *     npm run orders -- --rows 10000000
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { BatonClient } from '@baton/client'
import pg from 'pg'
import { PostgresServer } from '../../test/postgres/support/postgres-server.ts'
import { pythonProgram } from '../../test/support/python.ts'
import { spawnService } from '../../test/support/spawn-service.ts'
import { compare } from './compare.ts'
import { callBack, descriptorsOf, makeOrders, split } from './produce.ts'
import { prove } from './prove.ts'

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '10000000' },
    'records-per-partition': { type: 'string', default: '10000' },
    'database-url': { type: 'string' },
    python: { type: 'string' },
  },
})
const rows = Number(values.rows)
const pythonCommand = values.python ?? (await pythonProgram('psycopg'))
const taskId = 'orders'
const table = 'results.orders'
/** Of all workers together. They have eight handlers, and four leases are held by those that hang. */
const MOST_LEASES = 5
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const undo: (() => Promise<unknown>)[] = []

async function phase<T>(name: string, run: () => Promise<T>): Promise<T> {
  const begun = performance.now()
  const result = await run()
  console.log(`${name.padEnd(22)} ${((performance.now() - begun) / 1000).toFixed(1).padStart(7)} s`)
  return result
}

/** A worker in its own process. */
class WorkerProcess {
  readonly #child: ChildProcess
  readonly #hangs = Promise.withResolvers<void>()
  readonly #continued = Promise.withResolvers<void>()
  /** The time in handlers, in seconds. */
  busy = 0

  constructor(command: string, args: readonly string[], environment: Record<string, string>) {
    const env = { ...process.env, PYTHONPATH: here('../../clients/python/src'), ...environment }
    this.#child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
    undo.push(async () => this.#child.kill('SIGKILL'))
    if (this.#child.stdout === null) throw new Error('no output of the worker')
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      const [kind, detail] = line.split(' ')
      if (kind === 'hangs') this.#hangs.resolve()
      if (kind === 'continued') this.#continued.resolve()
      if (kind === 'settled') this.busy += Number(detail)
    })
  }

  /** Sends a signal once a handler hangs. */
  async whenItHangs(signal: NodeJS.Signals): Promise<void> {
    await this.#hangs.promise
    this.#child.kill(signal)
  }

  /** Lets it go on after a stop, until a handler that hung has tried to write. */
  async continue(): Promise<void> {
    this.#child.kill('SIGCONT')
    await this.#continued.promise
  }

  async stop(): Promise<void> {
    const ended = this.#child.exitCode === null ? once(this.#child, 'exit') : undefined
    this.#child.kill('SIGTERM')
    await ended
  }
}

async function startDatabase(): Promise<string> {
  const server = await PostgresServer.start({
    settings: { shared_buffers: '512MB', work_mem: '512MB', max_wal_size: '8GB', fsync: 'on' },
  })
  undo.push(() => server.dispose())
  return server.url()
}

async function startBaton(): Promise<string> {
  const data = await mkdtemp(join(tmpdir(), 'baton-orders-'))
  undo.push(() => rm(data, { recursive: true, force: true }))
  // Short leases, so that what a killed worker held is handed out again soon.
  const flags = [
    '--port',
    '0',
    '--data',
    data,
    '--lease-seconds',
    '3',
    '--backoff-seconds',
    '0',
    '--max-attempts',
    '100',
  ]
  const child = spawnService([...flags, '--log-level', 'warn'])
  undo.push(async () => child.kill('SIGTERM') && once(child, 'exit'))
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const url = /https?:\S+/.exec(line)?.[0]
    if (url !== undefined) return url
  }
  throw new Error('the service did not start')
}

/**
 * Works on everything. Returns the share of the time of the workers that is not spent in their handlers, and the
 * most leases that the table had.
 */
async function work(baton: string, databaseUrl: string) {
  const client = new BatonClient(baton)
  await client.changeTableSettings(table, { maxLeases: MOST_LEASES })
  let leases = 0
  const environment = { BATON: baton, DATABASE_URL: databaseUrl }
  const typescript = (name: string, more = {}) =>
    new WorkerProcess(process.execPath, ['--conditions=baton-source', here('worker.ts'), name], {
      ...environment,
      ...more,
    })
  const python = (name: string, more = {}) =>
    new WorkerProcess(pythonCommand, [here('worker.py'), name], { ...environment, ...more })

  // Both have read a partition and not written its result when they are killed and stopped.
  const hanging = { HANGS: 'true' }
  const [killed, stopped] = [python('killed', hanging), typescript('stopped', hanging)]
  await Promise.all([killed.whenItHangs('SIGKILL'), stopped.whenItHangs('SIGSTOP')])
  const begun = performance.now()
  const workers = [typescript('typescript'), python('python')]
  const isDone = async () => (await client.task(taskId)).state === 'done'
  while (!(await isDone())) {
    leases = Math.max(leases, (await client.table(table)).leases)
    await pause(50)
  }
  const seconds = (performance.now() - begun) / 1000
  // Only now does the stopped one go on, and write results of partitions that others have finished.
  await stopped.continue()
  await Promise.all([...workers, stopped].map((worker) => worker.stop()))
  const busy = workers.reduce((sum, worker) => sum + worker.busy, 0)
  return { share: 1 - busy / (seconds * 2 * workers.length), leases }
}

try {
  const databaseUrl = values['database-url'] ?? (await startDatabase())
  const baton = await startBaton()
  const database = new pg.Client({ connectionString: databaseUrl })
  await database.connect()
  undo.push(() => database.end())
  await phase('make the table', () => makeOrders(database, rows))
  await phase('split it', () => split(database, taskId, Number(values['records-per-partition'])))
  const descriptors = await phase('count', () => descriptorsOf(database, taskId))
  await phase('call back', () => callBack(baton, descriptors))
  const { share, leases } = await phase('work', () => work(baton, databaseUrl))
  const proof = await phase('prove', () => prove(database, baton, taskId))
  const { without, through } = await phase('compare', () => compare(databaseUrl, baton, descriptors))

  const percent = (share * 100).toFixed(1)
  console.log(
    `\n${rows} records in ${descriptors.length} partitions; ${percent} % of the work not in handlers`,
  )
  console.log(
    `read without Baton in ${without.toFixed(1)} s, through Baton in ${through.toFixed(1)} s: ${(through / without).toFixed(2)} times`,
  )
  const again = proof.begunAgain.join(', ') || 'none'
  console.log(`${proof.attemptsWasted} attempts were wasted; begun more than once: ${again}`)
  console.log(`late writes that the fencing token refused: ${proof.refused.join(', ') || 'none'}`)
  console.log(`gone on from a checkpoint: ${proof.resumed.join(', ') || 'none'}`)
  console.log(`${table} had at most ${leases} leases at a time; its limit is ${MOST_LEASES}`)
  if (leases > MOST_LEASES) proof.faults.push(`${table} had ${leases} leases`)
  for (const fault of proof.faults) console.log(`FAULT: ${fault}`)
  if (proof.faults.length > 0) process.exitCode = 1
  else console.log('proved: every record was counted once; declared, reported and read are equal')
} finally {
  for (const act of undo.toReversed()) await act()
}
