import type { PartitionRow, PartitionState } from '@baton/client'
import { MAX_PAGE_LENGTH, partitionStates } from '@baton/protocol/without-schemas'
import type { Command } from '../command.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes } from '../exit-codes.ts'
import { partitionTable } from '../show/partition-table.ts'
import { tableWidth } from '../show/table.ts'
import { note, print, printJson } from '../terminal.ts'

export const partitions: Command = {
  operands: 'TASK',
  operandCount: [1, 1],
  details:
    'Lists partitions of a task with their state, who holds them, how long they stay like that, and why they last failed.',
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
    wide: { kind: 'switch', description: 'shorten nothing, also where the terminal has no room for it' },
    ...connectionFlags,
  },
  examples: [
    { line: 'baton partitions orders-2026-03 --state parked', says: 'What is stuck, and why' },
    { line: 'baton partitions orders-2026-03 --state leased', says: 'Who has what, and until when' },
  ],
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
      print(partitionTable(rows, given.switch('wide') ? Number.POSITIVE_INFINITY : tableWidth()))
      if (cursor !== undefined) note('there are more: --limit, or baton manifest')
    }
    return exitCodes.ok
  },
}
