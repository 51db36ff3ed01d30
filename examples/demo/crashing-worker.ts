import { BatonClient, Worker } from '@baton/client'
import { pretendedLoad } from './handling.ts'

// A worker in its own process, so that it can really crash: its leases expire, and other workers take over.
const [url = '', instanceId = ''] = process.argv.slice(2)
const worker = new Worker(
  new BatonClient({ url, instanceId }),
  pretendedLoad({ recordsPerSecond: 30_000, crashesAfter: 9 }),
  { concurrency: 2 },
)
// Ends with the demo, however the demo ends.
process.on('disconnect', () => process.exit(0))
await worker.run()
