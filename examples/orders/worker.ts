/** A worker in TypeScript: `BATON=… DATABASE_URL=… node worker.ts NAME`. Ends at SIGTERM. */
import { once } from 'node:events'
import { BatonClient, Released, Worker } from '@baton/client'
import pg from 'pg'
import { formatTotals, parseTotals, readTotals, writeTotals } from './totals.ts'

const name = process.argv[2] ?? 'typescript'
const database = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 2 })
/** Whether handlers hang before they write, until the process was stopped and continues. */
const hangs = process.env['HANGS'] !== undefined
const client = new BatonClient({ url: process.env['BATON'] ?? 'http://127.0.0.1:7070', instanceId: name })

const worker = new Worker(
  client,
  async (partition, { signal, lease, attempt, checkpoint, progress, saveCheckpoint }) => {
    const began =
      'INSERT INTO results.order_attempts (partition_name, attempt, worker, resumed) VALUES ($1, $2, $3, $4)'
    await database.query(began, [partition.partition_name, attempt, name, checkpoint !== null])
    // Another worker has read it, and ended before it wrote.
    const totals = checkpoint === null ? await readTotals(database, partition) : parseTotals(checkpoint)
    signal.throwIfAborted()
    if (hangs) {
      progress({ records: totals.records, note: 'writing' })
      await saveCheckpoint(formatTotals(totals))
      // Listens before it says so: it may be stopped at once.
      const continued = once(process, 'SIGCONT')
      console.log(`hangs ${partition.partition_name}`)
      await continued
    }
    const isWritten = await writeTotals(database, partition, lease, name, totals)
    if (hangs) console.log(`continued ${partition.partition_name}`)
    if (!isWritten) throw new Released('a later lease has written the result')
    return { records: totals.records }
  },
  {
    concurrency: 2,
    tables: ['results.orders'],
    onEvent: (event) => {
      if (event.kind === 'settled') console.log(`settled ${event.millis / 1000}`)
    },
  },
)
process.once('SIGTERM', () => worker.stop())
await worker.run()
await database.end()
