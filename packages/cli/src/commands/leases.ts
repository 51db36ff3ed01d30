import type { Settlement } from '@baton/client'
import { MAX_RETRY_AFTER_SECONDS, outcomes } from '@baton/protocol/core'
import type { Arguments } from '../arguments.ts'
import type { Command } from '../command.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes, UsageError } from '../errors.ts'
import { readValues } from '../input/input.ts'
import { counted, duration } from '../show/numbers.ts'
import { note, print, printJson } from '../terminal.ts'
import { chosenIn, pulledTable, pullFlags, wireForm } from './pull.ts'

export const settle: Command = {
  operands: 'LEASE...|-',
  operandCount: [1, Number.POSITIVE_INFINITY],
  details:
    'Says how the work under leases ended. With - it reads settlements from stdin, a JSON array or one per line. With\n' +
    '--batch, --records, --wait, --table or --task it takes the next partitions in the same request. Exits with 1 if any\n' +
    'was refused.',
  flags: {
    outcome: {
      kind: 'text',
      placeholder: 'OUTCOME',
      choices: outcomes,
      default: 'done',
      description: 'how it ended',
    },
    reason: { kind: 'text', placeholder: 'TEXT', description: 'why, for operators' },
    final: { kind: 'switch', description: 'with failed: no further attempt' },
    'retry-after': {
      kind: 'number',
      placeholder: 'SECONDS',
      fractions: true,
      maximum: MAX_RETRY_AFTER_SECONDS,
      description: 'with failed or released: how long to leave it alone, instead of the usual back-off',
    },
    processed: { kind: 'number', placeholder: 'N', description: 'with done: records that were processed' },
    ...pullFlags,
    ...connectionFlags,
  },
  examples: [
    { line: 'baton settle "$lease" --processed 25000', says: 'Done, with the number of records' },
    {
      line: 'baton settle "$lease" --outcome failed --reason "table is locked" --retry-after 60',
      says: 'Not now',
    },
    { line: 'baton settle "$lease" --batch 1 --json', says: 'Done, and the next one please' },
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
    const pulls = Object.values(pull).some((wish) => wish !== undefined)
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
      throw new UsageError('- stands for settlements on stdin, and cannot stand beside leases')
    }
    const idle = ['outcome', 'reason', ...Object.keys(goesWith)].filter((flag) => given.switch(flag))
    if (idle.length === 0) return
    const flags = idle.map((flag) => `--${flag}`).join(', ')
    throw new UsageError(`settlements on stdin say themselves how they ended: without ${flags}`)
  }
  const outcome = outcomeOf(given)
  for (const [flag, fitting] of Object.entries(goesWith)) {
    if (given.switch(flag) && !fitting.includes(outcome)) {
      throw new UsageError(`--${flag} goes with --outcome ${fitting.join(' or ')}, not with ${outcome}`)
    }
  }
}

async function settlementsOf(given: Arguments): Promise<Settlement[]> {
  if (isFromStdin(given)) {
    const settlements: Settlement[] = []
    const source = { name: 'stdin', chunks: () => process.stdin }
    for await (const { value } of readValues(source)) settlements.push(value as Settlement)
    if (settlements.length === 0) throw new UsageError('there is no settlement on stdin')
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
    'Extends leases by their full length from now. Exits with 1 if any was refused: its work must be dropped.',
  flags: connectionFlags,
  examples: [{ line: 'baton renew "$lease" || kill "$worker"', says: 'Go on, or stop when it is lost' }],
  run: async (given) => {
    const answer = await connect(given).renew(given.operands)
    if (given.switch('json')) printJson(answer)
    else {
      for (const { leaseId, expiresInSeconds } of answer.renewed) {
        print(`${leaseId} ends in ${duration(expiresInSeconds)}`)
      }
      for (const { leaseId, code, detail } of answer.refused) note(`refused ${leaseId} (${code}): ${detail}`)
    }
    return answer.refused.length > 0 ? exitCodes.refused : exitCodes.ok
  },
}
