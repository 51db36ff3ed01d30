import { parseArgs } from 'node:util'
import { fleets } from './fleets.ts'
import { failOverStorm } from './patroni/fail-over-storm.ts'
import type { Disturbance } from './support/fleet.ts'
import { ProgramsMissing } from './support/programs.ts'
import { run } from './support/run.ts'
import type { Scene } from './support/scene.ts'
import { longStorm } from './support/storm.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    'lease-seconds': { type: 'string', default: '0.6' },
    only: { type: 'string', default: '' },
    fleet: { type: 'string', default: 'three' },
    /** How often the primary of `--fleet patroni` is killed; the other fleets run for `--seconds`. */
    kills: { type: 'string', default: '10' },
    /** Short for `--fleet embedded`. */
    embedded: { type: 'boolean', default: false },
  },
})
const seconds = Number(values.seconds)
const name = values.embedded ? 'embedded' : values.fleet
const fleet = Object.hasOwn(fleets, name) ? fleets[name] : undefined
if (fleet === undefined) throw new Error(`--fleet is one of ${Object.keys(fleets).join(', ')}, not ${name}`)
const startedAt = Date.now()
const say = (text: string) => {
  const elapsed = String(Math.round((Date.now() - startedAt) / 1000)).padStart(4)
  process.stderr.write(`[${elapsed} s] ${text}\n`)
}

/** All fleets, unless some are named. */
const chosen = (disturbances: readonly Disturbance[]) => {
  const names = values.only.split(',')
  return values.only === '' ? disturbances : disturbances.filter((one) => names.includes(one.name))
}
const startFleet = async (leaseMillis: number) => {
  const started = await fleet.start(leaseMillis, say)
  process.once('SIGINT', () => started.dispose().finally(() => process.exit(130)))
  return started
}
const isOfKills = name === 'patroni'
const storm = (scene: Scene, disturbances: readonly Disturbance[]) =>
  isOfKills
    ? failOverStorm(scene, chosen(disturbances), Number(values.kills), say)
    : longStorm(scene, chosen(disturbances), seconds, (happens) =>
        say(`${happens.padEnd(9)} ${scene.history.leases.size} leases, ${scene.history.done} done`),
      )

try {
  await fleet.demand?.()
} catch (error) {
  // A message for the user, not an error of the run.
  if (!(error instanceof ProgramsMissing)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exit(2)
}
say(`seed ${values.seed}, ${isOfKills ? `${values.kills} kills` : `${seconds} s`} on ${fleet.on}`)
const { findings, leases, done, unanswered } = await run({
  seed: Number(values.seed),
  leaseMillis: Number(values['lease-seconds']) * 1000,
  size: fleet.size,
  startFleet,
  storm,
  tell: say,
})
say(`${leases} leases, ${done} done, ${unanswered} requests unanswered, ${findings.length} findings`)
process.exit(findings.length === 0 ? 0 : 1)
