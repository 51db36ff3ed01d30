import type { Change, NodeAuditEntry } from '@baton/client'
import type { Arguments, Command } from '../command-line.ts'
import { connect, connectionFlags, cursorFlag, moreText, readPages } from '../connection.ts'
import { exitCodes, UsageError } from '../errors.ts'
import { count } from '../show/numbers.ts'
import { nameColumn, table } from '../show/table.ts'
import { answer, shown } from '../terminal.ts'

export const audit: Command = {
  operands: '',
  operandCount: [0, 0],
  details:
    'Lists what was changed by requests, and by whom, newest first. With --node: the refused tokens and the reloaded\n' +
    'files of the node that answers, since it started.',
  flags: {
    task: { kind: 'text', placeholder: 'TASK', description: 'only changes of this task' },
    name: { kind: 'text', placeholder: 'NAME', description: 'only changes by this token or user' },
    node: { kind: 'switch', description: 'refused tokens and reloaded files of the node that answers' },
    limit: {
      kind: 'number',
      placeholder: 'N',
      minimum: 1,
      default: 50,
      description: 'maximum number of entries',
    },
    cursor: cursorFlag,
    ...connectionFlags,
  },
  examples: [
    { line: 'baton audit --task orders-2026-03', says: 'Who changed a task' },
    { line: 'baton audit --node', says: 'Refused tokens' },
  ],
  run: async (given) => {
    const client = connect(given)
    const [task, name] = [given.text('task'), given.text('name')]
    if (!given.switch('node')) {
      await list(given, (page) => client.audit({ task, name, ...page }), changesTable, 'no changes')
      return exitCodes.ok
    }
    if (task !== undefined || name !== undefined)
      throw new UsageError('--node lists refused tokens and reloaded files; omit --task and --name')
    const nothing = 'no refused tokens and no reloaded files since the node started'
    await list(given, (page) => client.nodeAudit(page), nodeTable, nothing)
    return exitCodes.ok
  },
}

interface Page<Entry> {
  readonly entries: readonly Entry[]
  readonly next: string | null
}

/** Reads pages up to the limit and prints them. */
async function list<Entry>(
  given: Arguments,
  read: (page: { cursor: string | undefined; limit: number }) => Promise<Page<Entry>>,
  tableOf: (entries: readonly Entry[]) => string,
  nothing: string,
): Promise<void> {
  const { rows: entries, next } = await readPages('entries', read, {
    cursor: given.text('cursor'),
    limit: given.numberOrDefault('limit'),
  })
  const more = next === null ? undefined : moreText('--limit', next)
  answer(given, { entries, next }, () => (entries.length === 0 ? nothing : tableOf(entries)), more)
}

function changesTable(entries: readonly Change[]): string {
  return table(entries, [
    { title: 'WHEN', of: ({ at }) => at },
    nameColumn('NAME', ({ name }) => name ?? '-'),
    { title: 'ADDRESS', of: ({ address }) => shown(address ?? '-') },
    nameColumn('ACTION', ({ action }) => action),
    nameColumn('OF', ({ taskId, target }) => [taskId, target].filter((one) => one !== null).join(' ')),
    { title: 'CHANGED', of: ({ changed }) => count(changed) },
    nameColumn('REQUEST', ({ request }) => (request === null ? '' : JSON.stringify(request))),
  ])
}

function nodeTable(entries: readonly NodeAuditEntry[]): string {
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
