import { BatonClient, Worker } from '@baton/client'
import type { Command } from '../command-line.ts'
import { exitCodes } from '../errors.ts'
import { pretendedLoad } from './handling.ts'

/** A worker in its own process, so that it can really crash: its leases expire, and other workers take over. */
export const crashingWorker: Command = {
  operands: 'URL NAME',
  operandCount: [2, 2],
  details: 'A worker of the demo that crashes. It ends when its standard input is closed.',
  flags: {},
  examples: [],
  run: async ({ operands: [url = '', instanceId = ''] }) => {
    const load = pretendedLoad({ recordsPerSecond: 30_000, crashesAfter: 9 })
    const worker = new Worker(new BatonClient({ url, instanceId }), load, { concurrency: 2 })
    // Ends with the demo, however the demo ends.
    process.stdin.resume().once('close', () => process.exit(0))
    await worker.run()
    return exitCodes.ok
  },
}
