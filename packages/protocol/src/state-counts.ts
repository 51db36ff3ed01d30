import Type, { type Static } from 'typebox'
import { count } from './schema-parts.ts'

export const stateCountsSchema = Type.Object(
  {
    total: count({ description: 'The sum of all the others' }),
    ready: count({ description: 'Due to be handed out' }),
    held: count({ description: 'Kept back by a pause or a level barrier' }),
    leased: count({ description: 'In the hands of a worker' }),
    delayed: count({ description: 'Waiting for the end of a back-off' }),
    parked: count({ description: 'Out of attempts; waiting for an operator' }),
    done: count({ description: 'Finished' }),
    cancelled: count({ description: 'Given up together with the task' }),
  },
  { description: 'A number for each state' },
)
export type StateCounts = Static<typeof stateCountsSchema>
