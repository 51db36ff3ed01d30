import { BatonClient, Worker } from '@baton/client'
import { pretendedLoad } from './handling.ts'

// A worker in a process of its own, so that it can really go down: its leases expire, and others take over.
const [url = '', instanceId = ''] = process.argv.slice(2)
const worker = new Worker(
  new BatonClient({ url, instanceId }),
  pretendedLoad({ recordsPerSecond: 30_000, crashesAfter: 9 }),
  { concurrency: 2 },
)
// When the demo ends, however it ends, so does this.
process.on('disconnect', () => process.exit(0))
await worker.run()
