import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { Besieged } from '../siege/support/besieged.ts'
import { FLAT_RULE, footprintTable, growth, type Sample } from '../siege/support/footprints.ts'

/** Runs honest clients at full load for a long time: the resources of the service must not grow. */
const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '1200' }, store: { type: 'string', default: 'sqlite' } },
})
const { store } = values
if (store !== 'sqlite' && store !== 'postgres') throw new Error(`--store is sqlite or postgres, not ${store}`)
const seconds = Number(values.seconds)

const service = await Besieged.start(store, ['--log-level', 'warn'])
const giveUp = () => void service.dispose().finally(() => process.exit(130))
process.once('SIGINT', giveUp).once('SIGTERM', giveUp)
const clients = new Worker(new URL('../siege/support/steady-thread.ts', import.meta.url), {
  workerData: { port: service.port, address: '127.0.0.1' },
})
let done = 0
clients.on('message', (count: number) => {
  done = count
})

const samples: Sample[] = []
const began = performance.now()
const second = () => Math.round((performance.now() - began) / 1000)
while (second() < seconds) {
  await pause(1000)
  samples.push({ second: second(), ...(await service.footprint()) })
}
const grown = growth(samples)
await clients.terminate()
const faults = [
  ...grown,
  ...service.node.errors.map((error) => `logged: ${JSON.stringify(error)}`),
  ...(service.node.ends > 0 ? ['the process ended'] : []),
]
process.stdout.write(`${footprintTable(samples)}\n\n`)
process.stdout.write(
  `${store}, ${seconds} s, ${done} partitions done (${Math.round(done / seconds)} a second)\n`,
)
process.stdout.write(`${FLAT_RULE}\n`)
process.stdout.write(faults.length === 0 ? 'flat\n' : `not flat: ${faults.join('; ')}\n`)
await service.dispose()
process.exit(faults.length === 0 ? 0 : 1)
