import {
  chosenKeywords,
  idempotencyKeyKeywords,
  instanceIdKeywords,
  MAX_BATCH,
  MAX_CHOSEN,
  MAX_WAIT_SECONDS,
  settingNames,
  settingWord,
} from '@baton/protocol'
import Type, { type TSchema } from 'typebox'

/** The document adds the problems of each route. */
export const answers = (schema: TSchema, description: string, type = 'application/json') => ({
  200: { description, content: { [type]: { schema } } },
})

const instanceHeaderOf = (example: string) => ({
  'x-instance-id': Type.Optional(
    Type.String({
      ...instanceIdKeywords,
      description: 'A name that the client chooses; the client is then listed as an instance',
      examples: [example],
    }),
  ),
})

export const instanceHeader = instanceHeaderOf('loader-7')
export const producerHeader = instanceHeaderOf('orders-compute')

export const settingsHeader = {
  'task-settings': Type.Optional(
    Type.String({
      description: `Changes settings of the task: any of ${settingNames.map(settingWord).join(', ')}; null goes back to the value of the service`,
      examples: ['lease-seconds=600, max-leases=16'],
    }),
  ),
}

export const pullHeaders = {
  ...instanceHeader,
  prefer: Type.Optional(
    Type.String({
      description:
        `wait=<seconds up to ${MAX_WAIT_SECONDS}> waits until a partition is ready; ` +
        `batch=<up to ${MAX_BATCH}> requests several partitions; ` +
        'records=<number> stops when the partitions have this number of records, ' +
        `and without batch requests up to ${MAX_BATCH} partitions; the first partition is always handed out`,
      examples: ['wait=20, batch=50'],
    }),
  ),
  'idempotency-key': Type.Optional(
    Type.String({
      ...idempotencyKeyKeywords,
      description:
        'Repeating a request with the same key returns the same leases, never new ones. ' +
        'A key belongs to the token of the request or, without tokens, to the instance',
      examples: ['7f9c2ba4e88f827d'],
    }),
  ),
}

const amount = (description: string, example: number, least = 0) =>
  Type.Optional(Type.Integer({ minimum: least, description, examples: [example] }))

const chosen = (kind: 'table' | 'task', description: string, example: string) =>
  Type.Optional(
    Type.Array(Type.String({ ...chosenKeywords[kind] }), {
      maxItems: MAX_CHOSEN,
      description,
      examples: [[example]],
    }),
  )

/** `only` is the start of the descriptions. */
export const chosenParameters = (only: string) => ({
  table: chosen('table', `${only} this compute table; can be repeated to select several`, 'results.orders'),
  task: chosen('task', `${only} this task; can be repeated to select several`, 'orders-2026-03'),
})

/** The amounts of the Prefer header, and filters, as query parameters. */
export const pullParameters = {
  ...chosenParameters('Only partitions of'),
  batch: amount(`Maximum number of partitions, up to ${MAX_BATCH}; the same as in Prefer`, 50, 1),
  records: amount('Stop when the partitions have this number of records; the same as in Prefer', 200_000),
  wait: amount(
    `Number of seconds to wait for a ready partition, up to ${MAX_WAIT_SECONDS}; the same as in Prefer`,
    20,
  ),
}
