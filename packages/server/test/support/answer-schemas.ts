import {
  auditListSchema,
  callBackAnswerSchema,
  controlAnswerSchema,
  instanceListSchema,
  instanceStatusSchema,
  partitionListSchema,
  pullAnswerSchema,
  renewAnswerSchema,
  settleAnswerSchema,
  taskListSchema,
  taskViewSchema,
  totalsSchema,
} from '@baton/protocol'

/** What each route promises to answer. */
export const answerSchemas = (tableField: string) => [
  { method: 'POST', path: /\/call-back$/, schema: callBackAnswerSchema },
  { method: 'GET', path: /\/pull$/, schema: pullAnswerSchema(tableField) },
  { method: 'POST', path: /\/settle$/, schema: settleAnswerSchema(tableField) },
  { method: 'POST', path: /\/renew$/, schema: renewAnswerSchema },
  { method: 'GET', path: /\/test\/instance-status$/, schema: instanceStatusSchema },
  { method: 'GET', path: /\/instances$/, schema: instanceListSchema },
  { method: 'GET', path: /\/totals$/, schema: totalsSchema },
  { method: 'GET', path: /\/audit$/, schema: auditListSchema },
  { method: 'GET', path: /\/tasks$/, schema: taskListSchema },
  { method: 'GET', path: /\/tasks\/[^/]+$/, schema: taskViewSchema },
  { method: 'GET', path: /\/tasks\/[^/]+\/partitions$/, schema: partitionListSchema(tableField) },
  { method: 'POST', path: /\/tasks\/[^/]+\/[a-z-]+$/, schema: controlAnswerSchema },
]
