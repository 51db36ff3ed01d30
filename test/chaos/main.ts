import { parseArgs } from 'node:util'
import { startEmbeddedFleet } from './support/embedded-fleet.ts'
import type { Disturbance } from './support/fleet.ts'
import { startLoneFleet, startLossyFleet, startPostgresFleet } from './support/postgres-fleet.ts'
import { run } from './support/run.ts'
import { longStorm } from './support/storm.ts'

const size = { producers: 3, workers: 24, operators: 2, backlog: 12_000, ebb: 12_000, contrary: 1 }
const fleets = {
  three: { on: 'three nodes on PostgreSQL', start: startPostgresFleet, size },
  lone: { on: 'a lone node on PostgreSQL', start: startLoneFleet, size },
  lossy: {
    on: 'a pair whose standby lacks commits',
    start: startLossyFleet,
    size: { ...size, operators: 0 },
  },
  embedded: { on: 'the embedded store', start: startEmbeddedFleet, size },
}
const isFleet = (name: string): name is keyof typeof fleets => Object.hasOwn(fleets, name)

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    'lease-seconds': { type: 'string', default: '0.6' },
    only: { type: 'string', default: '' },
    fleet: { type: 'string', default: 'three' },
    /** Short for `--fleet embedded`. */
    embedded: { type: 'boolean', default: false },
  },
})
const seconds = Number(values.seconds)
const name = values.embedded ? 'embedded' : values.fleet
if (!isFleet(name)) throw new Error(`--fleet is one of ${Object.keys(fleets).join(', ')}, not ${name}`)
const { on, start, size: of } = fleets[name]
const startedAt = Date.now()
const say = (text: string) => {
  const elapsed = String(Math.round((Date.now() - startedAt) / 1000)).padStart(4)
  process.stderr.write(`[${elapsed} s] ${text}\n`)
}

/** All of them, unless some are named. */
const chosen = (disturbances: readonly Disturbance[]) => {
  const names = values.only.split(',')
  return values.only === '' ? disturbances : disturbances.filter(({ name }) => names.includes(name))
}
const startFleet = async (leaseMillis: number) => {
  const fleet = await start(leaseMillis)
  process.once('SIGINT', () => fleet.dispose().finally(() => process.exit(130)))
  return fleet
}

say(`seed ${values.seed}, ${seconds} s on ${on}`)
const { findings, leases, done, unanswered } = await run({
  seed: Number(values.seed),
  leaseMillis: Number(values['lease-seconds']) * 1000,
  size: of,
  startFleet,
  storm: (scene, disturbances) =>
    longStorm(scene, chosen(disturbances), seconds, (name) =>
      say(`${name.padEnd(9)} ${scene.history.leases.size} leases, ${scene.history.done} done`),
    ),
  tell: say,
})
say(`${leases} leases, ${done} done, ${unanswered} requests unanswered, ${findings.length} findings`)
process.exit(findings.length === 0 ? 0 : 1)
