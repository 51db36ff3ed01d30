import Type, { type Static } from 'typebox'
import { count, oneOf, orNull, timestamp } from './schema-parts.ts'

export const auditKinds = ['order', 'refused', 'reload'] as const

export const auditEntrySchema = Type.Object(
  {
    at: timestamp({ description: 'When it happened; of several that are one entry, the last' }),
    kind: oneOf(auditKinds, {
      description:
        'order: a request to change a task or the service. refused: a token that is unknown, or not for this. ' +
        'reload: a file of tokens or certificates that changed',
    }),
    name: orNull(
      Type.String({ description: 'The name of the token; null where there was none that is known' }),
    ),
    address: orNull(Type.String({ description: 'Where the request came from' })),
    action: Type.String({ description: 'What was asked for', examples: ['POST /tasks/orders/pause'] }),
    outcome: Type.String({
      description: 'done, or the error code that was answered',
      examples: ['done', 'task_unknown'],
    }),
    detail: orNull(Type.String({ description: 'More about it, for a person' })),
    times: count({
      description: 'How often: refusals that follow each other from one address are one entry',
    }),
  },
  { description: 'An action and who did it' },
)
export type AuditEntry = Static<typeof auditEntrySchema>

export const auditListSchema = Type.Object({
  entries: Type.Array(auditEntrySchema),
  next: orNull(Type.String({ description: 'The cursor of the next page; null on the last one' })),
})
export type AuditList = Static<typeof auditListSchema>
