import { once } from 'node:events'
import type { Attempt, PartitionOrder, PartitionRow, PartitionState } from '@baton/client'
import { partitionOrders, partitionStates } from '@baton/protocol/core'
import type { Command } from '../command-line.ts'
import { connect, connectionFlags, cursorFlag, moreText, readPages } from '../connection.ts'
import { exitCodes } from '../errors.ts'
import { duration, since } from '../show/numbers.ts'
import { nameColumn, table, tableWidth } from '../show/table.ts'
import { forgottenText, partitionTable, reasonText } from '../show/task.ts'
import { note, print, printJson, remark, shown } from '../terminal.ts'

const REASON = { least: 30 }

interface Line extends Attempt {
  readonly name: string
}

/** A table of attempts, oldest first. Partitions that were never handed out have none. */
function attemptTable(rows: readonly PartitionRow[], width: number): string {
  const now = Date.now()
  const lines = rows.flatMap(({ partition_name, history }): Line[] =>
    history.map((attempt) => ({ ...attempt, name: partition_name })),
  )
  return table(
    lines,
    [
      nameColumn('PARTITION', ({ name }) => name),
      { title: 'ATTEMPT', of: ({ attempt }) => `${attempt}`, align: 'right' },
      nameColumn('HOLDER', ({ holder }) => holder ?? '-'),
      { title: 'STARTED', of: ({ startedAt }) => since(startedAt, now) },
      { title: 'TOOK', of: (line) => duration(secondsOf(line, now)), align: 'right' },
      { title: 'OUTCOME', of: ({ outcome }) => outcome ?? 'running' },
      { title: 'REASON', of: ({ reason }, cellWidth) => reasonText(reason ?? '', cellWidth), text: REASON },
    ],
    width,
  )
}

function secondsOf({ startedAt, endedAt }: Attempt, now: number): number {
  const end = endedAt === null ? now : Date.parse(endedAt)
  return Math.max(0, (end - Date.parse(startedAt)) / 1000)
}

export const manifest: Command = {
  operands: 'TASK',
  operandCount: [1, 1],
  details:
    'Writes one line of JSON per partition, by level and index: its descriptor, its state, and its latest attempts with\n' +
    'their workers and reasons. `baton call-back --from-manifest` calls these partitions back again.',
  flags: {
    state: { kind: 'text', placeholder: 'STATE', choices: partitionStates, description: 'only these' },
    level: { kind: 'number', placeholder: 'N', description: 'only this level' },
    ...connectionFlags,
  },
  examples: [
    { line: 'baton manifest orders-2026-03 > manifest.ndjson', says: 'For an audit' },
    {
      line: 'baton manifest orders-2026-03 --state parked > parked.ndjson',
      says: 'Parked partitions, with the reasons',
    },
  ],
  run: async (given) => {
    const client = connect(given)
    const state = given.text('state') as PartitionState | undefined
    const level = given.number('level')
    for await (const line of client.manifest(given.operands[0] ?? '', { state, level })) {
      const wire = client.tableField.toWire(line)
      // Back-pressure: a slow reader slows down the service, and nothing is buffered here.
      if (!printJson(wire)) await once(process.stdout, 'drain')
    }
    return exitCodes.ok
  },
}

export const partitions: Command = {
  operands: 'TASK',
  operandCount: [1, 1],
  details:
    'Lists partitions of a task with their state, holder, time until the state ends, and the last failure.',
  flags: {
    state: {
      kind: 'text',
      placeholder: 'STATE',
      choices: partitionStates,
      description: 'only these',
    },
    level: { kind: 'number', placeholder: 'N', description: 'only this level' },
    name: {
      kind: 'text',
      placeholder: 'NAME',
      description: "only the partition with this name, or with 'BEGIN*' those whose name begins so",
    },
    holder: { kind: 'text', placeholder: 'ID', description: 'only those that this instance holds' },
    reason: {
      kind: 'text',
      placeholder: 'KEY',
      description: 'only those whose last failure is of this group; `baton tasks TASK --json` shows the keys',
    },
    order: {
      kind: 'text',
      placeholder: 'ORDER',
      choices: partitionOrders,
      description: 'unfinished: finished ones last',
    },
    limit: {
      kind: 'number',
      placeholder: 'N',
      minimum: 1,
      default: 100,
      description: 'maximum number of partitions; `baton manifest` lists all',
    },
    cursor: cursorFlag,
    history: { kind: 'switch', description: 'also list the latest attempts of each partition' },
    wide: { kind: 'switch', description: 'do not truncate, even if the terminal is too narrow' },
    ...connectionFlags,
  },
  examples: [
    {
      line: 'baton partitions orders-2026-03 --state parked',
      says: 'Parked partitions, and why they failed',
    },
    {
      line: 'baton partitions orders-2026-03 --state parked --history',
      says: 'The attempts: worker, time, reason',
    },
    {
      line: 'baton partitions orders-2026-03 --state leased',
      says: 'The holder and the expiry of each lease',
    },
    {
      line: "baton partitions orders-2026-03 --name 'orders-2026-03-0-1*'",
      says: 'By the beginning of the name',
    },
    { line: 'baton partitions orders-2026-03 --holder loader-7', says: 'What a worker holds' },
  ],
  run: async (given) => {
    const client = connect(given)
    const taskId = given.operands[0] ?? ''
    const chosen = {
      state: given.text('state') as PartitionState | undefined,
      level: given.number('level'),
      name: given.text('name'),
      holder: given.text('holder'),
      reason: given.text('reason'),
      order: given.text('order') as PartitionOrder | undefined,
    }
    const { rows, next } = await readPages(
      'partitions',
      (page) => client.partitions(taskId, { ...chosen, ...page }),
      { cursor: given.text('cursor'), limit: given.numberOrDefault('limit') },
    )
    if (given.switch('json')) {
      printJson({ partitions: rows.map((row) => client.tableField.toWire(row)), next })
    } else if (rows.length > 0) {
      const width = given.switch('wide') ? Number.POSITIVE_INFINITY : tableWidth()
      print(given.switch('history') ? attemptTable(rows, width) : partitionTable(rows, width))
      if (next !== null) note(moreText('--limit or baton manifest', next))
    }
    // An empty output would look like a task without partitions, which does not exist.
    if (rows.length === 0) {
      const isForgotten = (await client.task(taskId)).purgedAt !== null
      if (isForgotten) remark(given, `${shown(taskId)}: ${forgottenText}`)
      else if (!given.switch('json')) print('no partition matches')
    }
    return exitCodes.ok
  },
}
