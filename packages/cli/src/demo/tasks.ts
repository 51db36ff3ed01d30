import type { PartitionDescriptor } from '@baton/client'

export interface DemoTask {
  readonly taskId: string
  readonly computeTableName: string
  /** The number of partitions on each level, lowest first. */
  readonly levels: readonly number[]
  readonly recordsPerPartition: number
  /** Omitted, as if a computation had lost a partition: the page shows the gap. */
  readonly missing?: { readonly level: number; readonly index: number }
}

/** The tasks that exist when the page is first opened. */
export const firstTasks: readonly DemoTask[] = [
  {
    taskId: 'inventory-snapshot',
    computeTableName: 'results.inventory',
    levels: [12, 24],
    recordsPerPartition: 18_000,
  },
  {
    taskId: 'ledger-2026-q1',
    computeTableName: 'results.ledger',
    levels: [16, 30, 20],
    recordsPerPartition: 60_000,
  },
  {
    taskId: 'customer-segments',
    computeTableName: 'results.segments',
    levels: [20, 40],
    recordsPerPartition: 30_000,
    missing: { level: 1, index: 17 },
  },
  {
    taskId: 'orders-2026-03',
    computeTableName: 'results.orders',
    levels: [30, 60, 90],
    recordsPerPartition: 90_000,
  },
  {
    taskId: 'web-events-daily',
    computeTableName: 'results.web_events',
    levels: [40, 80, 120, 160, 200],
    recordsPerPartition: 140_000,
  },
]

/** The partitions that no worker can read, and why: they end up parked, and an operator can press Retry. */
export const UNREADABLE: ReadonlyMap<string, string> = new Map([
  ['ledger-2026-q1-0-11', 'checksum of results.ledger does not match: block 1182 is damaged'],
  ['ledger-2026-q1-1-4', 'checksum of results.ledger does not match: block 20471 is damaged'],
  ['ledger-2026-q1-1-23', 'checksum of results.ledger does not match: block 20533 is damaged'],
  ['ledger-2026-q1-2-8', 'column "amount" of results.ledger is missing'],
])

/** A worker takes half an hour for it, and renews its lease all the while. */
export const SLOW = 'orders-2026-03-1-7'
export const SLOW_SECONDS = 1800

/** Read by at most this many workers at a time. */
export const LIMITED = { table: 'results.web_events', maxLeases: 8 } as const

/** Stays paused, as if by an operator. */
export const PAUSED = 'inventory-snapshot'

/** Tasks that arrive while the demo runs. */
export function laterTask(count: number): DemoTask {
  const hour = String(count % 24).padStart(2, '0')
  return {
    taskId: `clicks-hourly-${hour}${count >= 24 ? `-run-${Math.floor(count / 24) + 1}` : ''}`,
    computeTableName: 'results.clicks',
    levels: [6 + (count % 5), 14 + (count % 7)],
    recordsPerPartition: 22_000,
  }
}

export function descriptorsOf({
  taskId,
  computeTableName,
  levels,
  recordsPerPartition,
  missing,
}: DemoTask): PartitionDescriptor[] {
  return levels.flatMap((partitions, level) =>
    Array.from({ length: partitions }, (_, index) => ({
      taskId,
      computeTableName,
      partition_name: `${taskId}-${level}-${index}`,
      // Uneven, like real partitions, and the same in each run.
      record_count: Math.round(recordsPerPartition * (0.6 + ((index * 7 + level * 3) % 9) / 10)),
      priorityLevel: level,
    })).filter(({ priorityLevel }, index) => priorityLevel !== missing?.level || index !== missing.index),
  )
}
