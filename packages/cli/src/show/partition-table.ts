import type { PartitionRow } from '@baton/client'
import { stateColours, styled } from '../terminal.ts'
import { ahead, count } from './numbers.ts'
import { beginning, type Column, nameColumn, shown, table } from './table.ts'

/**
 * The reason of a failure on one line. It usually is the end of a program's output, so if it is too long,
 * only its last line is shown.
 */
export function reasonText(reason: string, width: number): string {
  const lines = reason
    .split(/[\r\n]+/)
    .map((line) => shown(line.trim()))
    .filter((line) => line !== '')
  const [last = ''] = lines.slice(-1)
  const whole = lines.join(' · ')
  return beginning(whole, width) === whole ? whole : beginning(lines.length > 1 ? `… ${last}` : last, width)
}

const REASON = { least: 30 }

/** A table of partitions. Columns without any value are omitted. */
export function partitionTable(
  rows: readonly PartitionRow[],
  width: number,
  now: number = Date.now(),
): string {
  const where = (column: Column<PartitionRow>, has: (row: PartitionRow) => boolean) =>
    rows.some(has) ? [column] : []
  return table(
    rows,
    [
      nameColumn('PARTITION', ({ partition_name }) => partition_name),
      { title: 'STATE', of: ({ state }) => styled(stateColours[state], state) },
      { title: 'RECORDS', of: ({ record_count }) => count(record_count), align: 'right' },
      { title: 'ATTEMPTS', of: ({ attempts }) => count(attempts), align: 'right' },
      ...where(
        nameColumn('HOLDER', ({ holder }) => holder ?? ''),
        ({ holder }) => holder !== null,
      ),
      ...where(
        { title: 'LEASE ENDS', of: ({ leaseExpiresAt }) => moment(leaseExpiresAt, now) },
        ({ leaseExpiresAt }) => leaseExpiresAt !== null,
      ),
      ...where(
        { title: 'READY', of: ({ readyAt }) => moment(readyAt, now) },
        ({ readyAt }) => readyAt !== null,
      ),
      ...where(
        {
          title: 'LAST REASON',
          of: ({ lastReason }, cellWidth) => reasonText(lastReason ?? '', cellWidth),
          text: REASON,
        },
        ({ lastReason }) => lastReason !== null,
      ),
    ],
    width,
  )
}

function moment(timestamp: string | null, now: number): string {
  return timestamp === null ? '' : ahead(timestamp, now)
}
