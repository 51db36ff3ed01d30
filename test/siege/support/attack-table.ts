import type { AttackReport } from './attacked.ts'

const columns = [
  'attack',
  'connections/s, MB/s',
  'partitions/s before',
  'during',
  'share',
  '/livez before: 99 %, slowest',
  'during: 99 %, slowest',
  'after: slowest',
  'RSS before, at most (MB)',
]

/** Formats the table as Markdown. */
export function attackTable(reports: readonly AttackReport[]): string {
  const rows = reports.map((report) => {
    const { name, rateBefore, rateDuring, probesBefore, probesDuring, probesAfter } = report
    return [
      name,
      `${report.connectionRate}, ${report.receivedMbRate}`,
      rateBefore,
      rateDuring,
      `${Math.round((100 * rateDuring) / rateBefore)} %`,
      `${probesBefore.p99Millis}, ${probesBefore.slowestMillis} ms`,
      `${probesDuring.p99Millis}, ${probesDuring.slowestMillis} ms`,
      `${probesAfter.slowestMillis} ms`,
      `${report.residentMbBefore}, ${report.residentMbAtMost}`,
    ]
  })
  const line = (cells: readonly unknown[]) => `| ${cells.join(' | ')} |`
  return [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n')
}
