import { parseArgs } from 'node:util'
import { attackTable } from './support/attack-table.ts'
import { attacked } from './support/attacked.ts'
import { attacks } from './support/attacks.ts'
import { footprintTable } from './support/footprints.ts'
import { besiege } from './support/siege.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    store: { type: 'string', default: 'sqlite' },
    attacks: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    verbose: { type: 'boolean', default: false },
  },
})
const { store } = values
if (store !== 'sqlite' && store !== 'postgres') throw new Error(`--store is sqlite or postgres, not ${store}`)
const startedAt = Date.now()
const say = (text: string) => {
  const elapsed = String(Math.round((Date.now() - startedAt) / 1000)).padStart(4)
  process.stderr.write(`[${elapsed} s] ${text}\n`)
}

const seed = Number(values.seed)
const seconds = Number(values.seconds)
if (values.attacks) {
  // One after the other, to see what each costs honest clients.
  const reports = []
  for (const attack of attacks.filter(({ name }) => name.includes(values.only))) {
    say(attack.name)
    reports.push(await attacked(attack, seconds))
  }
  process.stdout.write(`${attackTable(reports)}\n`)
  process.exit(0)
}
say(`seed ${seed}, ${seconds} s on ${store}`)
const outcome = await besiege({ store, seconds, seed, tell: values.verbose ? say : () => {} })
const { findings, before, after, peakResidentMb, probes, honest } = outcome
for (const finding of findings.slice(0, 20)) say(`finding: ${finding}`)
say(`floods: ${JSON.stringify(outcome.floods)}`)
say(`bounds met: ${JSON.stringify(outcome.boundsMet)}`)
say(
  `honest: ${honest.done} partitions done, ${honest.requests} requests, sent again: ${JSON.stringify(honest.refused)}`,
)
say(
  `/livez: ${probes.count} probes, median ${probes.medianMillis} ms, 99 % within ${probes.p99Millis} ms, slowest ${probes.slowestMillis} ms`,
)
process.stdout.write(`${footprintTable(outcome.samples)}\n`)
say(`memory: ${before.residentMb} MB before, ${peakResidentMb} MB at most, ${after.residentMb} MB after`)
say(
  `handles: ${before.handles} before, ${after.handles} after; timers: ${before.timers}, ${after.timers}; connections: ${before.connections}, ${after.connections}`,
)
say(`${findings.length} findings`)
process.exit(findings.length === 0 ? 0 : 1)
