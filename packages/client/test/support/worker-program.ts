import { BatonClient, Worker } from '@baton/client'

/**
 * A worker as a separate program, so that a test can stop and continue its whole process. Prints each event
 * as a line of JSON. Its handler ends when the process gets SIGUSR2, or after the given number of renewals.
 */
const renewalsToAwait = Number(process.env['RENEWALS_TO_AWAIT'] ?? Number.POSITIVE_INFINITY)
let renewals = 0
const released = new Set<() => void>()

function letGo(): void {
  for (const release of released) release()
  released.clear()
}

process.on('SIGUSR2', letGo)

const worker = new Worker(
  new BatonClient({ url: process.env['BATON_URL'] ?? '', instanceId: 'program' }),
  () => new Promise<void>((resolve) => released.add(resolve)),
  {
    concurrency: Number(process.env['CONCURRENCY'] ?? 1),
    onEvent: (event) => {
      process.stdout.write(`${JSON.stringify(event)}\n`)
      if (event.kind !== 'renewed') return
      renewals += 1
      if (renewals % renewalsToAwait === 0) letGo()
    },
  },
)

process.once('SIGTERM', () => void worker.stop({ finishWithinSeconds: 0 }))
await worker.run()
