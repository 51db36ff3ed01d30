import type { Attempt, PartitionRow } from '@baton/client'
import { duration, since } from './numbers.ts'
import { reasonText } from './reason.ts'
import { nameColumn, table } from './table.ts'

const REASON = { least: 30 }

interface Line extends Attempt {
  readonly name: string
}

/** Attempts line by line, oldest first; partitions that were never handed out have none. */
export function attemptTable(rows: readonly PartitionRow[], width: number, now: number = Date.now()): string {
  const lines = rows.flatMap(({ partition_name, history }): Line[] =>
    history.map((attempt) => ({ ...attempt, name: partition_name })),
  )
  return table(
    lines,
    [
      nameColumn('PARTITION', ({ name }) => name),
      { title: 'ATTEMPT', of: ({ attempt }) => `${attempt}`, align: 'right' },
      nameColumn('HOLDER', ({ holder }) => holder ?? '-'),
      { title: 'STARTED', of: ({ startedAt }) => since(startedAt, now) },
      { title: 'TOOK', of: (line) => duration(secondsOf(line, now)), align: 'right' },
      { title: 'OUTCOME', of: ({ outcome }) => outcome ?? 'running' },
      { title: 'REASON', of: ({ reason }, room) => reasonText(reason ?? '', room), text: REASON },
    ],
    width,
  )
}

function secondsOf({ startedAt, endedAt }: Attempt, now: number): number {
  const end = endedAt === null ? now : Date.parse(endedAt)
  return Math.max(0, (end - Date.parse(startedAt)) / 1000)
}
