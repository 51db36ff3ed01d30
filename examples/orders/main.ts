/**
 * The whole story with one command: makes a table of orders, splits it, calls the partitions back, works on them in
 * TypeScript and Python while one worker is killed and one is stopped for longer than its lease, and proves that
 * every record was counted once.
 *
 *     npm run orders -- --rows 10000000
 */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { BatonClient } from '@baton/client'
import pg from 'pg'
import { PostgresServer } from '../../test/postgres/support/postgres-server.ts'
import { pythonProgram } from '../../test/support/python.ts'
import { spawnService } from '../../test/support/spawn-service.ts'
import { compare } from './compare.ts'
import { Phases } from './phases.ts'
import { callBack, descriptorsOf, makeOrders, split } from './produce.ts'
import { prove } from './prove.ts'
import { WorkerProcess } from './worker-process.ts'

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
const undo: (() => unknown)[] = []

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
  const leases = ['--lease-seconds', '3', '--backoff-seconds', '0', '--max-attempts', '100']
  const child = spawnService(['--port', '0', '--data', data, ...leases, '--log-level', 'warn'])
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
async function work(client: BatonClient, environment: Record<string, string>) {
  await client.changeTableSettings(table, { maxLeases: MOST_LEASES })
  const started = (worker: WorkerProcess) => {
    undo.push(() => worker.kill())
    return worker
  }
  const typescript = (name: string, more = {}) =>
    started(WorkerProcess.typescript(name, { ...environment, ...more }))
  const python = (name: string, more = {}) =>
    started(WorkerProcess.python(pythonCommand, name, { ...environment, ...more }))

  // Both have read a partition and not written its result when they are killed and stopped.
  const hanging = { HANGS: 'true' }
  const [killed, stopped] = [python('killed', hanging), typescript('stopped', hanging)]
  await Promise.all([killed.whenItHangs('SIGKILL'), stopped.whenItHangs('SIGSTOP')])
  const begun = performance.now()
  const workers = [typescript('typescript'), python('python')]
  let leases = 0
  while ((await client.task(taskId)).state !== 'done') {
    leases = Math.max(leases, (await client.table(table)).leases)
    await pause(50)
  }
  const seconds = (performance.now() - begun) / 1000
  // Only now does the stopped one go on, and write results of partitions that others have finished.
  await stopped.continue()
  await Promise.all([...workers, stopped].map((worker) => worker.stop()))
  const busy = workers.reduce((sum, worker) => sum + worker.busy, 0)
  return { outside: 1 - busy / (seconds * 2 * workers.length), leases }
}

try {
  const databaseUrl = values['database-url'] ?? (await startDatabase())
  const baton = await startBaton()
  const phases = new Phases(baton)
  const client = new BatonClient({ url: baton, onRequest: ({ millis }) => phases.asked(millis) })
  const database = new pg.Client({ connectionString: databaseUrl })
  await database.connect()
  undo.push(() => database.end())
  await phases.run('make the table', () => makeOrders(database, rows))
  await phases.run('split it', () => split(database, taskId, Number(values['records-per-partition'])))
  const descriptors = await phases.run('count', () => descriptorsOf(database, taskId))
  await phases.run('call back', () => callBack(client, descriptors, descriptors.length))
  const environment = { BATON: baton, DATABASE_URL: databaseUrl }
  const { outside, leases } = await phases.run('work', () => work(new BatonClient(baton), environment))
  const proof = await phases.run('prove', () => prove(database, client, taskId))
  const { without, through } = await phases.run('compare', () =>
    compare(databaseUrl, new BatonClient(baton), descriptors),
  )
  phases.sum()

  const ratio = (through / without).toFixed(2)
  console.log(`
${rows} records in ${descriptors.length} partitions
workers spent ${(outside * 100).toFixed(1)} % of the work outside of their handlers
read without Baton in ${without.toFixed(1)} s, through Baton in ${through.toFixed(1)} s: ${ratio} times
${proof.attemptsWasted} attempts were wasted; begun more than once: ${proof.begunAgain.join(', ') || 'none'}
late writes that the fencing token refused: ${proof.refused.join(', ') || 'none'}
gone on from a checkpoint: ${proof.resumed.join(', ') || 'none'}
${table} had at most ${leases} leases at a time; its limit is ${MOST_LEASES}`)
  if (leases > MOST_LEASES) proof.faults.push(`${table} had ${leases} leases`)
  for (const fault of proof.faults) console.log(`FAULT: ${fault}`)
  if (proof.faults.length > 0) process.exitCode = 1
  else console.log('proved: every record was counted once; declared, reported and read are equal')
} finally {
  for (const act of undo.toReversed()) await act()
}
