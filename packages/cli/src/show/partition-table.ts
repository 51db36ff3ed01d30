import type { PartitionRow } from '@baton/client'
import { styled } from '../terminal.ts'
import { ahead, count } from './numbers.ts'
import { reasonText } from './reason.ts'
import { stateColours } from './state-colours.ts'
import { type Column, nameColumn, table } from './table.ts'

const REASON = { least: 30 }

/** Partitions line by line; what none of them has takes no room. */
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
          of: ({ lastReason }, room) => reasonText(lastReason ?? '', room),
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
