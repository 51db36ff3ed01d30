import Type, { type Static } from 'typebox'
import { DEFAULT_TABLE_FIELD } from '../limits.ts'
import { descriptorFields } from './descriptor.ts'
import { orNull, timestamp, traceparent } from './schema-parts.ts'

export const leaseSchema = Type.Object(
  {
    id: Type.String({
      description: 'A secret: a request that names it may renew and settle the lease',
      examples: ['b3xq7Yt1cZ0kPm4vL9sNfg'],
    }),
    attempt: Type.Integer({
      minimum: 1,
      description: 'Which attempt at the partition this is',
      examples: [1],
    }),
    expiresAt: timestamp({ description: 'When the lease ends unless it is renewed, by the service clock' }),
    expiresInSeconds: Type.Number({
      minimum: 0,
      description: 'The same as a duration, for clients whose clock differs',
      examples: [300],
    }),
  },
  { description: 'One term of holding a partition' },
)
export type Lease = Static<typeof leaseSchema>

const defaultPulledPartitionSchema = pulledPartition(DEFAULT_TABLE_FIELD)
export type PulledPartition = Static<typeof defaultPulledPartitionSchema>

export function pulledPartitionSchema(
  tableField: string = DEFAULT_TABLE_FIELD,
): typeof defaultPulledPartitionSchema {
  return tableField === DEFAULT_TABLE_FIELD ? defaultPulledPartitionSchema : pulledPartition(tableField)
}

function pulledPartition(tableField: string) {
  return Type.Object(
    {
      ...descriptorFields(tableField),
      lease: orNull(leaseSchema),
      traceparent: Type.Optional(traceparent()),
    },
    {
      description:
        'A partition that was handed out; lease is null where handing out settles. It also has the fields beyond the contract that its descriptor had, where the service keeps them',
    },
  )
}

export function pullAnswerSchema(tableField: string = DEFAULT_TABLE_FIELD) {
  return Type.Object(
    {
      partitions: Type.Array(pulledPartitionSchema(tableField), {
        description: 'In the order in which they were due; empty when nothing is ready',
      }),
    },
    { description: 'What was handed out' },
  )
}
export type PullAnswer = Static<ReturnType<typeof pullAnswerSchema>>
