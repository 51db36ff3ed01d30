import { POSTGRES_SETTINGS } from '../harness/postgres.ts'
import { machine } from '../report/machine.ts'
import type { Figure, Row } from '../report/model.ts'
import { asMarkdown, fieldMedian, figureTable, medianAndSpread, type Table } from '../report/tables.ts'
import { type PeerContender, type PeersBench, WORKS, type Work } from './peer.ts'

export interface PeersResult {
  contenders: readonly PeerContender[]
  /** In the order of the contenders. */
  rows: readonly Row[]
  figures: readonly Figure[]
  skipped: readonly string[]
}

const TITLES: Record<Work, string> = {
  'one by one': 'Claim and acknowledge one by one',
  'one exchange': 'Acknowledge and claim the next in one exchange',
  batches: 'Batches, or the documented way for throughput',
}

const HEADER = `# Comparison with other services

Written by \`npm run bench:peers\`. The same work, partitions per second, the median over the rounds with the
smallest and the largest in parentheses. All contenders are measured in turn in every round, with servers and
consumers on the same machine; each service at its fastest documented durable setting.
`

/** The measured part of the table, for the terminal; the page adds explanations. */
export function workTable({ contenders, rows }: PeersResult, work: Work): Table | undefined {
  const chosen = contenders.flatMap((contender, index) => {
    const row = rows[index]
    return contender.work === work && row ? [row] : []
  })
  if (chosen.length === 0) return undefined
  return {
    head: ['contender', 'per second', 'server CPU s', 'client CPU s'],
    body: chosen.map(({ label, measurements }) => [
      label,
      medianAndSpread(measurements.map((measurement) => measurement.rate)),
      fieldMedian(measurements, 'serverCpuSeconds'),
      fieldMedian(measurements, 'clientCpuSeconds'),
    ]),
  }
}

export function workTitle(work: Work): string {
  return TITLES[work]
}

function explained(result: PeersResult, work: Work): string | undefined {
  const table = workTable(result, work)
  if (!table) return undefined
  const about = result.contenders.filter((contender) => contender.work === work)
  const body = table.body.map((cells, index) => {
    const { setting = '', favoured = '', hurt = '' } = about[index] ?? {}
    return [...cells, setting, favoured, hurt]
  })
  return asMarkdown({ head: [...table.head, 'setting', 'in its favour', 'against it'], body })
}

export function peersPage(bench: PeersBench, flags: string, result: PeersResult): string {
  const { sizes, consumers, batch } = bench
  const about: [string, string][] = [
    ['command', `\`npm run bench:peers${flags === '' ? '' : ` -- ${flags}`}\``],
    ...machine(),
    [
      'rounds',
      `${sizes.rounds} of ${sizes.seconds} s, warm-ups of ${sizes.warmUpSeconds} s until it gets no faster`,
    ],
    ['consumers', `${consumers}, in one process; batches of ${batch}`],
    [
      'PostgreSQL settings',
      `fsync and synchronous_commit on, ${POSTGRES_SETTINGS.join(', ')}; VACUUM ANALYZE after each fill`,
    ],
  ]
  const quotients = figureTable({ rows: [], figures: [...result.figures], notes: [] })
  const sections = WORKS.flatMap((work) => {
    const table = explained(result, work)
    return table === undefined ? [] : [`## ${TITLES[work]}`, table]
  })
  const page = [
    HEADER,
    asMarkdown({ head: ['', ''], body: about }),
    ...sections,
    ...(quotients ? ['## Baton compared with each', asMarkdown(quotients)] : []),
    ...(result.skipped.length > 0
      ? ['## Skipped', result.skipped.map((line) => `- ${line}`).join('\n')]
      : []),
  ]
  return `${page.join('\n\n')}\n`
}
