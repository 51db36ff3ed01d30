import type { AuditEntry } from '@baton/client'
import { MAX_PAGE_LENGTH } from '@baton/protocol/core'
import type { Command } from '../command.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes } from '../errors.ts'
import { cursorFlag, moreText } from '../paging.ts'
import { count } from '../show/numbers.ts'
import { nameColumn, shown, table } from '../show/table.ts'
import { note, print, printJson } from '../terminal.ts'

export const audit: Command = {
  operands: '',
  operandCount: [0, 0],
  details:
    'Lists who gave which order, which tokens were refused, and when files of tokens or certificates were read again:\n' +
    'at the node that answers, since it started, newest first. The log of each node has the same for good.',
  flags: {
    limit: { kind: 'number', placeholder: 'N', minimum: 1, default: 50, description: 'the most to list' },
    cursor: cursorFlag,
    ...connectionFlags,
  },
  examples: [{ line: 'baton audit --limit 10', says: 'What was done last, and by whom' }],
  run: async (given) => {
    const client = connect(given)
    const limit = given.numberOrDefault('limit')
    const entries: AuditEntry[] = []
    let cursor = given.text('cursor')
    do {
      const page = await client.audit({ cursor, limit: Math.min(limit - entries.length, MAX_PAGE_LENGTH) })
      entries.push(...page.entries)
      cursor = page.next ?? undefined
    } while (cursor !== undefined && entries.length < limit)
    if (given.switch('json')) printJson({ entries, next: cursor ?? null })
    else if (entries.length === 0) print('nothing was ordered or refused since the node started')
    else {
      print(auditTable(entries))
      if (cursor !== undefined) note(moreText('--limit', cursor))
    }
    return exitCodes.ok
  },
}

function auditTable(entries: readonly AuditEntry[]): string {
  return table(entries, [
    { title: 'WHEN', of: ({ at }) => at },
    nameColumn('NAME', ({ name }) => name ?? '-'),
    { title: 'ADDRESS', of: ({ address }) => shown(address ?? '-') },
    nameColumn('ACTION', ({ action }) => action),
    {
      title: 'OUTCOME',
      of: ({ outcome, times }) => (times > 1 ? `${outcome} (${count(times)} times)` : outcome),
    },
    nameColumn('DETAIL', ({ detail }) => detail ?? ''),
  ])
}
