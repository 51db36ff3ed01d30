import type { InstanceStatus } from '@baton/client'
import { styled } from '../terminal.ts'
import { count, since } from './numbers.ts'
import { instanceColours } from './state-colours.ts'
import { nameColumn, table, tableWidth } from './table.ts'

export function instanceTable(instances: readonly InstanceStatus[], width = tableWidth()): string {
  return table(
    instances,
    [
      nameColumn('INSTANCE', ({ instanceId }) => instanceId),
      { title: 'ROLE', of: ({ role }) => role },
      { title: 'STATUS', of: ({ status: state }) => styled(instanceColours[state], state) },
      { title: 'LEASES', of: ({ leases }) => count(leases), align: 'right' },
      { title: 'DONE', of: ({ totals }) => count(totals.done), align: 'right' },
      { title: 'FAILED', of: ({ totals }) => count(totals.failed), align: 'right' },
      { title: 'RECORDS', of: ({ totals }) => count(totals.records), align: 'right' },
      { title: 'SEEN', of: ({ lastSeenAt }) => since(lastSeenAt) },
    ],
    width,
  )
}
