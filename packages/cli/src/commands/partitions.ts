import type { PartitionRow, PartitionState } from '@baton/client'
import { MAX_PAGE_LENGTH, partitionStates } from '@baton/protocol/without-schemas'
import type { Command } from '../command.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes } from '../exit-codes.ts'
import { count } from '../show/numbers.ts'
import { stateColours } from '../show/state-colours.ts'
import { shown, table } from '../show/table.ts'
import { note, print, printJson, styled } from '../terminal.ts'

const LONGEST_REASON = 80

export const partitions: Command = {
  operands: 'TASK',
  operandCount: [1, 1],
  details: 'Lists partitions of a task with their state, who holds them, and why they last failed.',
  flags: {
    state: {
      kind: 'text',
      placeholder: 'STATE',
      choices: partitionStates,
      description: 'only these',
    },
    level: { kind: 'number', placeholder: 'N', description: 'only this level' },
    limit: {
      kind: 'number',
      placeholder: 'N',
      minimum: 1,
      otherwise: '100',
      description: 'the most to list; `baton manifest` lists all',
    },
    ...connectionFlags,
  },
  examples: [{ line: 'baton partitions orders-2026-03 --state parked', says: 'What is stuck, and why' }],
  run: async (given) => {
    const client = connect(given)
    const limit = given.number('limit') ?? 100
    const state = given.text('state') as PartitionState | undefined
    const level = given.number('level')
    const rows: PartitionRow[] = []
    let cursor: string | undefined
    do {
      const page = await client.partitions(given.operands[0] ?? '', {
        state,
        level,
        cursor,
        limit: Math.min(limit - rows.length, MAX_PAGE_LENGTH),
      })
      rows.push(...page.partitions)
      cursor = page.next ?? undefined
      // A page may come out short although more follow: it reads a bounded number of rows.
    } while (cursor !== undefined && rows.length < limit)
    if (given.switch('json')) {
      printJson({ partitions: rows.map((row) => client.tableField.toWire(row)), next: cursor ?? null })
    } else {
      print(rowTable(rows))
      if (cursor !== undefined) note('there are more: --limit, or baton manifest')
    }
    return exitCodes.ok
  },
}

function rowTable(rows: readonly PartitionRow[]): string {
  return table(rows, [
    { title: 'PARTITION', of: ({ partition_name }) => shown(partition_name) },
    { title: 'STATE', of: ({ state }) => styled(stateColours[state], state) },
    { title: 'RECORDS', of: ({ record_count }) => count(record_count), align: 'right' },
    { title: 'ATTEMPTS', of: ({ attempts }) => count(attempts), align: 'right' },
    { title: 'HOLDER', of: ({ holder }) => shown(holder ?? '') },
    { title: 'LAST REASON', of: ({ lastReason }) => shown((lastReason ?? '').slice(0, LONGEST_REASON)) },
  ])
}
