import { readFile, writeFile } from 'node:fs/promises'
import { loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { machine } from '../../../bench/report/machine.ts'
import { attackTable } from './attack-table.ts'
import type { AttackReport } from './attacked.ts'
import type { StoreName } from './besieged.ts'
import type { SiegeOutcome } from './siege.ts'

const PAGE = fileURLToPath(new URL('../../../bench/siege.md', import.meta.url))

export interface FullSiege {
  readonly attacks: readonly AttackReport[]
  readonly attackSeconds: number
  readonly sieges: Readonly<Record<StoreName, SiegeOutcome>>
  readonly siegeSeconds: number
  readonly seed: number
  /** The load average before the first attack. */
  readonly load: number
}

export const loadNow = (): number => loadavg()[0] ?? Number.NaN

/** Writes the results. The section about full load is of another run, and stays. */
export async function writePage(full: FullSiege): Promise<void> {
  const fullLoad = (await readFile(PAGE, 'utf8')).split('\n## Full load\n')[1] ?? ''
  const about = new Map(machine())
  const of = (name: string) => about.get(name) ?? ''
  const rows = Object.entries(full.sieges).map(([store, outcome]) => {
    const { before, after, peakResidentMb, honest, probes, findings } = outcome
    const handles = ({ handles, timers, connections }: typeof before) =>
      `${handles}, ${timers}, ${connections}`
    const cells = [
      store === 'sqlite' ? 'SQLite' : 'PostgreSQL',
      honest.done.toLocaleString('en'),
      `${before.residentMb}, ${peakResidentMb}, ${after.residentMb} MB`,
      `${handles(before)} and ${handles(after)}`,
      `${probes.medianMillis}, ${probes.p99Millis}, ${probes.slowestMillis} ms`,
      findings.length,
    ]
    return `| ${cells.join(' | ')} |`
  })
  await writeFile(
    PAGE,
    `# Under attack and under full load

Results of \`npm run siege -- --full\` on ${of('date')}, on ${of('processors')} with ${of('memory')}, which attackers, clients and PostgreSQL share with the service; load average ${full.load.toFixed(1)} before it. [Security](../docs/security.md#threats-and-defences) lists the tests.

## One attack at a time

On the embedded store, one attack runs after the other, for ${full.attackSeconds} seconds each, while eight correct workers use the service. It holds if they keep half of their rate, and \`/livez\`, on new connections, is answered within 250 ms.

${attackTable(full.attacks)}

## Six attackers at a time

Six attackers at a time send random floods for ${full.siegeSeconds} seconds (seed ${full.seed}), while two producers and six workers use the service. A finding is a lost partition, a wrong answer, a request that had to be repeated for no reason, or something that does not return to normal.

| store | partitions done | RSS before, at most, after | handles, timers, connections before and after | \`/livez\`: median, 99 %, slowest | findings |
|---|---|---|---|---|---|
${rows.join('\n')}

## Full load
${fullLoad}`,
  )
}
