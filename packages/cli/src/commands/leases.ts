import type { BatonClient, PulledPartition, Settlement } from '@baton/client'
import {
  checkChosen,
  MAX_BATCH,
  MAX_RETRY_AFTER_SECONDS,
  MAX_WAIT_SECONDS,
  outcomes,
} from '@baton/protocol/core'
import type { Arguments, Command, Flags } from '../command-line.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes, UsageError } from '../errors.ts'
import { readValues } from '../input/json-values.ts'
import { count, counted, duration } from '../show/numbers.ts'
import { table } from '../show/table.ts'
import { note, print, printJson, shown } from '../terminal.ts'

/** Flags that filter partitions, for every command that pulls. */
export const chosenFlags = {
  table: {
    kind: 'text',
    placeholder: 'SCHEMA.TABLE',
    repeatable: true,
    otherwise: 'any table',
    description: 'only partitions of this compute table; can be repeated',
  },
  task: {
    kind: 'text',
    placeholder: 'TASK',
    repeatable: true,
    otherwise: 'any task',
    description: 'only partitions of this task; can be repeated',
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
const pullFlags = {
  ...chosenFlags,
  batch: {
    kind: 'number',
    placeholder: 'N',
    minimum: 1,
    maximum: MAX_BATCH,
    otherwise: `1, with --records ${MAX_BATCH}`,
    description: 'maximum number of partitions',
  },
  records: {
    kind: 'number',
    placeholder: 'N',
    description: 'stop when the partitions have this number of records; at least one is handed out',
  },
  wait: {
    kind: 'number',
    placeholder: 'SECONDS',
    maximum: MAX_WAIT_SECONDS,
    otherwise: '0',
    description: 'how long to wait if no partition is ready',
  },
} satisfies Flags

export const pull: Command = {
  operands: '',
  operandCount: [0, 0],
  details:
    'Pulls partitions under leases. Each lease must be settled, and renewed before it expires if the work takes longer.\n' +
    'Exits with 3 if no partition was ready. `baton work` does all of this for a command.',
  flags: { ...pullFlags, ...connectionFlags },
  examples: [
    { line: 'baton pull --batch 10 --wait 20', says: 'Up to ten; waits for the first one' },
    { line: 'baton pull --table results.orders', says: 'Partitions of one table' },
    {
      line: "lease=$(baton pull --json | jq -r '.partitions[0].lease.id // empty')",
      says: 'The lease id, in a script; empty if no partition is ready',
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
    else if (partitions.length === 0) note('no partition is ready')
    else print(pulledTable(partitions))
    return partitions.length === 0 ? exitCodes.nothing : exitCodes.ok
  },
}

/** The partition as the service sent it, with the wire name of the table field. */
function wireForm(client: BatonClient, partition: PulledPartition): object {
  const { lease, traceparent } = partition
  const added = traceparent === undefined ? { lease } : { lease, traceparent }
  return { ...client.tableField.describe(partition), ...added }
}

function pulledTable(partitions: readonly PulledPartition[]): string {
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

export const settle: Command = {
  operands: 'LEASE...|-',
  operandCount: [1, Number.POSITIVE_INFINITY],
  details:
    'Settles leases. With - it reads settlements from stdin, as a JSON array or one per line. With --batch, --records,\n' +
    '--wait, --table or --task it pulls the next partitions in the same request. Exits with 1 if a lease was refused.',
  flags: {
    outcome: {
      kind: 'text',
      placeholder: 'OUTCOME',
      choices: outcomes,
      default: 'done',
      description: 'the outcome',
    },
    reason: { kind: 'text', placeholder: 'TEXT', description: 'the reason, shown to operators' },
    final: { kind: 'switch', description: 'with failed: no further attempt' },
    'retry-after': {
      kind: 'number',
      placeholder: 'SECONDS',
      fractions: true,
      maximum: MAX_RETRY_AFTER_SECONDS,
      description:
        'with failed or released: time before the next attempt, instead of the configured back-off',
    },
    processed: {
      kind: 'number',
      placeholder: 'N',
      description: 'with done: number of records that were processed',
    },
    ...pullFlags,
    ...connectionFlags,
  },
  examples: [
    { line: 'baton settle "$lease" --processed 25000', says: 'Done, with the number of records' },
    {
      line: 'baton settle "$lease" --outcome failed --reason "table is locked" --retry-after 60',
      says: 'Not now',
    },
    { line: 'baton settle "$lease" --batch 1 --json', says: 'Done, and pull the next partition' },
  ],
  run: async (given) => {
    validateSettings(given)
    const client = connect(given)
    const pull = {
      batch: given.number('batch'),
      records: given.number('records'),
      waitSeconds: given.number('wait'),
      ...chosenIn(given),
    }
    const pulls = Object.values(pull).some((value) => value !== undefined)
    const answer = await client.settle(await settlementsOf(given), pulls ? { pull } : {})
    const { settled, refused, partitions } = answer
    if (given.switch('json')) {
      printJson({ settled, refused, partitions: partitions.map((each) => wireForm(client, each)) })
    } else {
      print(`${counted(settled.length, 'lease')} settled`)
      for (const { leaseId, code, detail } of refused) note(`refused ${leaseId} (${code}): ${detail}`)
      if (partitions.length > 0) print(pulledTable(partitions))
    }
    return refused.length > 0 ? exitCodes.refused : exitCodes.ok
  },
}

const isFromStdin = (given: Arguments) => given.operands.includes('-')
const outcomeOf = (given: Arguments) => given.textOrDefault('outcome') as Settlement['outcome']

/** Flags that are valid only with certain outcomes. */
const goesWith: Readonly<Record<string, readonly Settlement['outcome'][]>> = {
  final: ['failed'],
  'retry-after': ['failed', 'released'],
  processed: ['done'],
}

/** Rejects combinations of flags that the service would silently ignore. */
function validateSettings(given: Arguments): void {
  if (isFromStdin(given)) {
    if (given.operands.length > 1) {
      throw new UsageError('- reads settlements from stdin and cannot be combined with lease ids')
    }
    const idle = ['outcome', 'reason', ...Object.keys(goesWith)].filter((flag) => given.switch(flag))
    if (idle.length === 0) return
    const flags = idle.map((flag) => `--${flag}`).join(', ')
    throw new UsageError(`settlements on stdin contain their outcome; remove ${flags}`)
  }
  const outcome = outcomeOf(given)
  for (const [flag, fitting] of Object.entries(goesWith)) {
    if (given.switch(flag) && !fitting.includes(outcome)) {
      throw new UsageError(`--${flag} requires --outcome ${fitting.join(' or ')}, got ${outcome}`)
    }
  }
}

async function settlementsOf(given: Arguments): Promise<Settlement[]> {
  if (isFromStdin(given)) {
    const settlements: Settlement[] = []
    const source = { name: 'stdin', chunks: () => process.stdin }
    for await (const { value } of readValues(source)) settlements.push(value as Settlement)
    if (settlements.length === 0) throw new UsageError('stdin contains no settlement')
    return settlements
  }
  const reason = given.text('reason')
  const retryAfterSeconds = given.number('retry-after')
  const records = given.number('processed')
  const outcome = outcomeOf(given)
  return given.operands.map((leaseId) => ({
    leaseId,
    outcome,
    ...(reason === undefined ? {} : { reason }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(given.switch('final') ? { final: true } : {}),
    ...(records === undefined ? {} : { records }),
  }))
}

export const renew: Command = {
  operands: 'LEASE...',
  operandCount: [1, Number.POSITIVE_INFINITY],
  details:
    'Extends leases to their full length from now. Exits with 1 if a lease was refused: stop working on its partition.',
  flags: connectionFlags,
  examples: [
    { line: 'baton renew "$lease" || kill "$worker"', says: 'Stop the worker if the lease is lost' },
  ],
  run: async (given) => {
    const answer = await connect(given).renew(given.operands)
    if (given.switch('json')) printJson(answer)
    else {
      for (const { leaseId, expiresInSeconds } of answer.renewed) {
        print(`${leaseId} expires in ${duration(expiresInSeconds)}`)
      }
      for (const { leaseId, code, detail } of answer.refused) note(`refused ${leaseId} (${code}): ${detail}`)
    }
    return answer.refused.length > 0 ? exitCodes.refused : exitCodes.ok
  },
}
