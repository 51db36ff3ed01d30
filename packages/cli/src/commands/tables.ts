import {
  type BatonClient,
  ProblemError,
  type TableSettingsAnswer,
  type TableSettingsRequest,
  type TableView,
} from '@baton/client'
import { settingKeywords } from '@baton/protocol/core'
import type { Arguments, Command } from '../command-line.ts'
import { connect, connectionFlags, located, readPages } from '../connection.ts'
import { exitCodes, UsageError } from '../errors.ts'
import { count, counted, since } from '../show/numbers.ts'
import { nameColumn, table as textTable } from '../show/table.ts'
import { answer, shown, styled } from '../terminal.ts'

export const tables: Command = {
  operands: '',
  operandCount: [0, 0],
  details: 'Shows the compute tables that have open work or settings. Numbers are over all tasks.',
  flags: connectionFlags,
  examples: [{ line: 'baton tables', says: 'What runs and waits on each table' }],
  run: async (given) => {
    const client = connect(given)
    const { rows: all } = await readPages('tables', (page) => client.tables(page))
    answer(given, { tables: all }, () => listOf(all))
    return exitCodes.ok
  },
}

export const tableCommand: Command = {
  operands: 'TABLE',
  operandCount: [1, 1],
  details:
    'Shows a compute table over all tasks, and changes the settings that are given; the others stay as they are. Can be\n' +
    'used before the table is first called back. Running leases go on.',
  flags: {
    'max-leases': {
      kind: 'text',
      placeholder: 'N|none',
      otherwise: 'unchanged',
      description: 'most leases of the table at a time, over all tasks; none: no limit',
    },
    pause: { kind: 'switch', description: 'hand out nothing of the table' },
    resume: { kind: 'switch', description: 'end the pause' },
    ...connectionFlags,
  },
  examples: [
    { line: 'baton table analytics.orders_result', says: 'Leases, waiting work, pace and settings' },
    { line: 'baton table analytics.orders_result --max-leases 8', says: 'Eight workers at a time' },
    { line: 'baton table analytics.orders_result --pause', says: 'Nobody touches it' },
  ],
  run: async (given) => {
    const [name = ''] = given.operands
    const change = changeIn(given)
    const client = connect(given)
    if (Object.keys(change).length > 0)
      await client
        .changeTableSettings(name, change)
        .catch(located({ placeOf: (pointer) => (pointer === '/maxLeases' ? '--max-leases' : '--pause') }))
    const view = await viewOf(client, name, Object.keys(change).length > 0)
    answer(given, view, () =>
      'waiting' in view ? lines(view) : `${shown(name)} has no work, limit or pause`,
    )
    return exitCodes.ok
  },
}

/** A table whose settings were just reset, and that has no work, is not known any more. */
async function viewOf(
  client: BatonClient,
  name: string,
  wasChanged: boolean,
): Promise<TableView | TableSettingsAnswer> {
  try {
    return await client.table(name)
  } catch (error) {
    if (!wasChanged || !(error instanceof ProblemError) || error.code !== 'table_unknown') throw error
    return client.tableSettings(name)
  }
}

function changeIn(given: Arguments): TableSettingsRequest {
  if (given.switch('pause') && given.switch('resume'))
    throw new UsageError('--pause and --resume exclude each other')
  const most = given.text('max-leases')
  const { minimum, maximum } = settingKeywords.maxLeases
  const number = most === undefined || !/^\d+$/.test(most) ? Number.NaN : Number(most)
  if (most !== undefined && most !== 'none' && !(number >= minimum && number <= maximum))
    throw new UsageError(
      `--max-leases must be an integer from ${minimum} to ${count(maximum)}, or none, got ${most}`,
    )
  return {
    ...(most === undefined ? {} : { maxLeases: most === 'none' ? null : number }),
    ...(given.switch('pause') ? { paused: true } : given.switch('resume') ? { paused: false } : {}),
  }
}

const stateOf = ({ settings: { paused }, leases, settings: { maxLeases } }: TableView): string =>
  paused ? 'paused' : maxLeases !== null && leases >= maxLeases ? 'at its limit' : 'open'

const leasesOf = ({ leases, settings: { maxLeases } }: TableView): string =>
  maxLeases === null ? count(leases) : `${count(leases)} of ${count(maxLeases)}`

const paceOf = ({ pace: { recordsPerSecond } }: TableView): string =>
  recordsPerSecond === null ? '-' : `${count(Math.round(recordsPerSecond))} records/s`

const askedOf = ({ lastAskedAt }: TableView): string => (lastAskedAt === null ? 'never' : since(lastAskedAt))

function listOf(all: readonly TableView[]): string {
  if (all.length === 0) return 'no table has open work or settings'
  return textTable(all, [
    nameColumn('TABLE', ({ table }) => table),
    { title: 'LEASES', of: leasesOf, align: 'right' },
    { title: 'WORKERS', of: ({ workers }) => count(workers), align: 'right' },
    { title: 'WAITING', of: ({ waiting }) => count(waiting.partitions), align: 'right' },
    { title: 'PACE', of: paceOf },
    { title: 'ASKED FOR', of: askedOf },
    { title: 'STATE', of: (view) => stateOf(view) },
  ])
}

function tasksOf({ tasks, taskIds }: TableView): string {
  const others = tasks - taskIds.length
  const words = [...taskIds.map(shown), ...(others > 0 ? [counted(others, 'other')] : [])]
  return words.length === 0 ? 'none' : words.join(', ')
}

function lines(view: TableView): string {
  const { table, workers, waiting, settings } = view
  const facts: [string, string][] = [
    ['tasks', tasksOf(view)],
    ['leases', `${leasesOf(view)}, ${counted(workers, 'worker')}`],
    ['waiting', `${counted(waiting.partitions, 'partition')}, ${counted(waiting.records, 'record')}`],
    ['pace', paceOf(view)],
    ['asked for', askedOf(view)],
    ['max leases', settings.maxLeases === null ? 'no limit' : count(settings.maxLeases)],
    ['paused', settings.paused ? 'yes' : 'no'],
  ]
  return [styled('bold', shown(table)), ...facts.map(([name, value]) => `  ${name.padEnd(12)}${value}`)].join(
    '\n',
  )
}
