import { parseArgs } from 'node:util'
import { attackTable, holds } from './support/attack-table.ts'
import { type AttackReport, attacked } from './support/attacked.ts'
import { attacks } from './support/attacks.ts'
import type { StoreName } from './support/besieged.ts'
import { footprintTable } from './support/footprints.ts'
import { besiege } from './support/siege.ts'
import { loadNow, writePage } from './support/siege-page.ts'

/** Of a full siege. */
const ATTACK_SECONDS = 4
const SIEGE_SECONDS = 75
const FULL_SEED = 1

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    store: { type: 'string', default: 'sqlite' },
    attacks: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    verbose: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(`npm run siege -- [options]

  --full              all attacks, and a siege on both stores, in about eleven minutes; writes bench/siege.md
  --attacks           the attacks alone, one after the other
  --only <text>       of the attacks, those whose name contains this
  --seconds <n>       of the siege, or of each attack (60)
  --seed <n>          of the siege; the same floods again
  --store <name>      of the siege: sqlite or postgres
  --verbose           the state of the process each second

Attacks:
${attacks.map(({ name }) => `  ${name}`).join('\n')}
`)
  process.exit(0)
}
const { store } = values
if (store !== 'sqlite' && store !== 'postgres') throw new Error(`--store is sqlite or postgres, not ${store}`)
const startedAt = Date.now()
const say = (text: string) => {
  const elapsed = String(Math.round((Date.now() - startedAt) / 1000)).padStart(4)
  process.stderr.write(`[${elapsed} s] ${text}\n`)
}

const seed = Number(values.seed)
const seconds = Number(values.seconds)
/** One after the other, to see what each costs honest clients. */
async function attackedBy(text: string, each: number): Promise<AttackReport[]> {
  const reports: AttackReport[] = []
  for (const attack of attacks.filter(({ name }) => name.includes(text))) {
    say(attack.name)
    reports.push(await attacked(attack, each))
  }
  return reports
}

if (values.full) {
  const load = loadNow()
  const reports = await attackedBy('', ATTACK_SECONDS)
  const besieged = (of: StoreName) => {
    say(`a siege on ${of}`)
    return besiege({ store: of, seconds: SIEGE_SECONDS, seed: FULL_SEED })
  }
  const sieges = { sqlite: await besieged('sqlite'), postgres: await besieged('postgres') }
  await writePage({
    attacks: reports,
    attackSeconds: ATTACK_SECONDS,
    sieges,
    siegeSeconds: SIEGE_SECONDS,
    seed: FULL_SEED,
    load,
  })
  const findings = Object.values(sieges).flatMap((outcome) => outcome.findings)
  for (const finding of findings.slice(0, 20)) say(`finding: ${finding}`)
  const fallen = reports.filter((report) => !holds(report))
  for (const { name } of fallen) say(`does not hold: ${name}`)
  process.exit(fallen.length + findings.length === 0 ? 0 : 1)
}
if (values.attacks) {
  process.stdout.write(`${attackTable(await attackedBy(values.only, seconds))}\n`)
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
