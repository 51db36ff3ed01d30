import Type, { type Static, type TSchema } from 'typebox'
import { MAX_PARTITION_NAME_LENGTH } from '../limits.ts'
import type { EventName } from '../states.ts'
import { type InstanceStatus, instanceStatusSchema } from './instance.ts'
import { count, orNull } from './schema-parts.ts'
import { type TaskSummary, taskSummarySchema } from './task.ts'

export const parkedEventSchema = Type.Object(
  {
    taskId: Type.String({ examples: ['orders-2026-03'] }),
    partition_name: Type.String({ maxLength: MAX_PARTITION_NAME_LENGTH, examples: ['orders-2026-03-0-7'] }),
    priorityLevel: count({ examples: [0] }),
    attempts: count({ description: 'Attempts that were made', examples: [5] }),
    reason: orNull(
      Type.String({ description: 'Why the last one failed', examples: ['compute table is locked'] }),
    ),
  },
  { description: 'A partition ran out of attempts and waits for an operator' },
)
export type ParkedEvent = Static<typeof parkedEventSchema>

export const resetEventSchema = Type.Object(
  {},
  { description: 'Events may have been missed: read everything again' },
)

/** The schema of `data`, by event name. */
export const eventSchemas = {
  task: taskSummarySchema,
  parked: parkedEventSchema,
  instance: instanceStatusSchema,
  reset: resetEventSchema,
} as const satisfies Record<EventName, TSchema>

/** One event as a client receives it. */
export type StreamEvent =
  | { readonly name: 'task'; readonly data: TaskSummary }
  | { readonly name: 'parked'; readonly data: ParkedEvent }
  | { readonly name: 'instance'; readonly data: InstanceStatus }
  | { readonly name: 'reset'; readonly data: Record<string, never> }
