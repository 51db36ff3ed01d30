import type { BatonClient, PulledPartition } from '@baton/client'
import { checkChosen, MAX_BATCH, MAX_WAIT_SECONDS } from '@baton/protocol/core'
import type { Arguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes, UsageError } from '../errors.ts'
import type { Flags } from '../flag.ts'
import { count, duration } from '../show/numbers.ts'
import { shown, table } from '../show/table.ts'
import { note, print, printJson } from '../terminal.ts'

/** Flags that filter partitions, for every command that pulls. */
export const chosenFlags = {
  table: {
    kind: 'text',
    placeholder: 'SCHEMA.TABLE',
    repeatable: true,
    otherwise: 'any table',
    description: 'only partitions of this compute table; may be given several times',
  },
  task: {
    kind: 'text',
    placeholder: 'TASK',
    repeatable: true,
    otherwise: 'any task',
    description: 'only partitions of this task; may be given several times',
  },
} satisfies Flags

/** The values of these flags. A name that the service would refuse is a usage error. */
export function chosenIn(given: Arguments): { tables?: readonly string[]; tasks?: readonly string[] } {
  const of = (kind: 'table' | 'task') => {
    const names = given.texts(kind)
    const checked = checkChosen(kind, names)
    if (!checked.ok) throw new UsageError(`--${checked.detail}`)
    return checked.names
  }
  const [tables, tasks] = [of('table'), of('task')]
  return { ...(tables.length === 0 ? {} : { tables }), ...(tasks.length === 0 ? {} : { tasks }) }
}

/** Flags for the amount to pull, for every command that pulls. */
export const pullFlags = {
  ...chosenFlags,
  batch: {
    kind: 'number',
    placeholder: 'N',
    minimum: 1,
    maximum: MAX_BATCH,
    otherwise: `1, with --records ${MAX_BATCH}`,
    description: 'the most partitions to take',
  },
  records: {
    kind: 'number',
    placeholder: 'N',
    description: 'stop taking once their records reach this number; one is always given',
  },
  wait: {
    kind: 'number',
    placeholder: 'SECONDS',
    maximum: MAX_WAIT_SECONDS,
    otherwise: '0',
    description: 'how long to wait when nothing is ready',
  },
} satisfies Flags

export const pull: Command = {
  operands: '',
  operandCount: [0, 0],
  details:
    'Takes partitions under leases. Each must be settled with its lease, and renewed before the lease ends if the\n' +
    'work takes longer. Exits with 3 when nothing was ready. `baton work` does all of this for a command.',
  flags: { ...pullFlags, ...connectionFlags },
  examples: [
    { line: 'baton pull --batch 10 --wait 20', says: 'Up to ten, waiting for the first if need be' },
    { line: 'baton pull --table results.orders', says: 'Of one table only' },
    {
      line: "lease=$(baton pull --json | jq -r '.partitions[0].lease.id // empty')",
      says: 'The lease, in a script; empty where nothing is ready',
    },
  ],
  run: async (given) => {
    const client = connect(given)
    const { partitions } = await client.pull({
      batch: given.number('batch'),
      records: given.number('records'),
      waitSeconds: given.number('wait'),
      ...chosenIn(given),
    })
    if (given.switch('json')) printJson({ partitions: partitions.map((each) => wireForm(client, each)) })
    else if (partitions.length === 0) note('nothing is ready')
    else print(pulledTable(partitions))
    return partitions.length === 0 ? exitCodes.nothing : exitCodes.ok
  },
}

/** The partition as the service sent it, with the wire name of the table field. */
export function wireForm(client: BatonClient, partition: PulledPartition): object {
  const { lease, traceparent } = partition
  const added = traceparent === undefined ? { lease } : { lease, traceparent }
  return { ...client.tableField.describe(partition), ...added }
}

export function pulledTable(partitions: readonly PulledPartition[]): string {
  return table(partitions, [
    { title: 'PARTITION', of: ({ partition_name }) => shown(partition_name) },
    { title: 'TABLE', of: ({ computeTableName }) => shown(computeTableName) },
    { title: 'RECORDS', of: ({ record_count }) => count(record_count), align: 'right' },
    { title: 'LEVEL', of: ({ priorityLevel }) => count(priorityLevel), align: 'right' },
    { title: 'ATTEMPT', of: ({ lease }) => String(lease?.attempt ?? ''), align: 'right' },
    {
      title: 'ENDS IN',
      of: ({ lease }) => (lease === null ? '' : duration(lease.expiresInSeconds)),
      align: 'right',
    },
    { title: 'LEASE', of: ({ lease }) => lease?.id ?? '(none)' },
  ])
}
