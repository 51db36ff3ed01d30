import type { AttackReport } from './attacked.ts'

/** What honest clients and probes must see during each attack, on a machine that does nothing else. */
const LEAST_SHARE = 0.5
const MOST_LIVEZ_MILLIS = 250

const columns = [
  'attack',
  'connections/s, MB/s',
  'partitions/s before → during',
  '`/livez`, slowest before, during, after',
  'RSS before, at most',
  'holds',
]

const shareOf = ({ rateBefore, rateDuring }: AttackReport): number => rateDuring / rateBefore

export const holds = (report: AttackReport): boolean =>
  shareOf(report) >= LEAST_SHARE &&
  report.probesDuring.slowestMillis <= MOST_LIVEZ_MILLIS &&
  report.faults.length === 0

/** Formats the table as Markdown. */
export function attackTable(reports: readonly AttackReport[]): string {
  const rows = reports.map((report) => {
    const { probesBefore, probesDuring, probesAfter } = report
    const slowest = [probesBefore, probesDuring, probesAfter].map(({ slowestMillis }) => slowestMillis)
    return [
      report.name,
      `${report.connectionRate}, ${report.receivedMbRate}`,
      `${report.rateBefore} → ${report.rateDuring} (${Math.round(100 * shareOf(report))} %)`,
      `${slowest.join(', ')} ms`,
      `${report.residentMbBefore}, ${report.residentMbAtMost} MB`,
      holds(report) ? 'yes' : '**no**',
    ]
  })
  const line = (cells: readonly unknown[]) => `| ${cells.join(' | ')} |`
  return [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n')
}
