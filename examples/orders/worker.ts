/** A worker in TypeScript: `BATON=… DATABASE_URL=… node worker.ts NAME`. Ends at SIGTERM. */
import { setTimeout as pause } from 'node:timers/promises'
import { BatonClient, Released, Worker } from '@baton/client'
import pg from 'pg'
import { readTotals, writeTotals } from './totals.ts'

const name = process.argv[2] ?? 'typescript'
const database = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 2 })
/** Makes a worker slow, so that it holds partitions when it is killed or stopped. */
const slowSeconds = Number(process.env['SLOW_SECONDS'] ?? 0)
const client = new BatonClient({ url: process.env['BATON'] ?? 'http://127.0.0.1:7070', instanceId: name })

const worker = new Worker(
  client,
  async (partition, { signal, lease, attempt }) => {
    const began = 'INSERT INTO results.order_attempts (partition_name, attempt, worker) VALUES ($1, $2, $3)'
    await database.query(began, [partition.partition_name, attempt, name])
    const totals = await readTotals(database, partition)
    await pause(slowSeconds * 1000)
    signal.throwIfAborted()
    if (!(await writeTotals(database, partition, lease, name, totals)))
      throw new Released('a later lease has written the result')
    return { records: totals.records }
  },
  {
    concurrency: 2,
    tables: ['results.orders'],
    onEvent: (event) => {
      if (event.kind === 'started') console.log(`started ${event.partition.partition_name}`)
      if (event.kind === 'settled') console.log(`settled ${event.millis / 1000}`)
    },
  },
)
process.once('SIGTERM', () => worker.stop())
await worker.run()
await database.end()
