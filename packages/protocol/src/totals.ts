import Type, { type Static } from 'typebox'
import { count } from './schema-parts.ts'
import { stateCountsSchema } from './state-counts.ts'

export const totalsSchema = Type.Object(
  {
    tasks: Type.Object(
      {
        open: count(),
        stalled: count(),
        paused: count(),
        withParked: count({ description: 'Those of all of them that have parked partitions' }),
      },
      { description: 'Tasks that are neither done nor cancelled' },
    ),
    partitions: stateCountsSchema,
    records: stateCountsSchema,
    complete: Type.Boolean({
      description:
        'False when there are more such tasks than are added up: each number is then at least so high',
    }),
  },
  { description: 'All unfinished tasks together' },
)
export type Totals = Static<typeof totalsSchema>
