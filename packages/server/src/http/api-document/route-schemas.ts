import {
  chosenKeywords,
  idempotencyKeyKeywords,
  instanceIdKeywords,
  MAX_BATCH,
  MAX_CHOSEN,
  MAX_WAIT_SECONDS,
  PROBLEM_MEDIA_TYPE,
  problemSchema,
  settingNames,
  settingWord,
} from '@baton/protocol'
import Type, { type TSchema } from 'typebox'

export const problemAnswers = {
  default: {
    description: 'Why the request was not carried out',
    content: { [PROBLEM_MEDIA_TYPE]: { schema: problemSchema } },
  },
}

export const answers = (schema: TSchema, description: string) => ({
  200: { description, content: { 'application/json': { schema } } },
  ...problemAnswers,
})

const instanceHeaderOf = (example: string) => ({
  'x-instance-id': Type.Optional(
    Type.String({
      ...instanceIdKeywords,
      description: 'The name that the caller gives itself; it then appears among the instances',
      examples: [example],
    }),
  ),
})

export const instanceHeader = instanceHeaderOf('loader-7')
export const producerHeader = instanceHeaderOf('orders-compute')

export const settingsHeader = {
  'task-settings': Type.Optional(
    Type.String({
      description: `The settings of the task from now on, in place of those it had: any of ${settingNames.map(settingWord).join(', ')}`,
      examples: ['lease-seconds=600, max-leases=16'],
    }),
  ),
}

export const pullHeaders = {
  ...instanceHeader,
  prefer: Type.Optional(
    Type.String({
      description:
        `wait=<seconds up to ${MAX_WAIT_SECONDS}> waits for something to become ready; ` +
        `batch=<up to ${MAX_BATCH}> asks for several; ` +
        'records=<number> stops once this number of records is reached, ' +
        `and without batch asks for up to ${MAX_BATCH}; the first is given in any case`,
      examples: ['wait=20, batch=50'],
    }),
  ),
  'idempotency-key': Type.Optional(
    Type.String({
      ...idempotencyKeyKeywords,
      description:
        'Repeating a request with the same key gives its leases again, never new ones. ' +
        'A key belongs to the token, or without tokens to the instance, that it is sent with',
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
  table: chosen(
    'table',
    `${only} this compute table; may be repeated, and then of any of these`,
    'results.orders',
  ),
  task: chosen('task', `${only} this task; may be repeated, and then of any of these`, 'orders-2026-03'),
})

/** The amounts of the Prefer header, and filters, as query parameters. */
export const pullParameters = {
  ...chosenParameters('Only partitions of'),
  batch: amount(`How many at most, up to ${MAX_BATCH}; as in Prefer`, 50, 1),
  records: amount('Stop once this number of records is reached; as in Prefer', 200_000),
  wait: amount(`How many seconds to wait for something, up to ${MAX_WAIT_SECONDS}; as in Prefer`, 20),
}
