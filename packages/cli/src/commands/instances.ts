import {
  type BatonClient,
  type HeldLease,
  type InstanceAttempt,
  type InstanceListOptions,
  type InstanceStatus,
  ProblemError,
} from '@baton/client'
import { instanceSorts, instanceStates } from '@baton/protocol/core'
import type { Arguments, Command } from '../command-line.ts'
import { connect, connectionFlags, readPages } from '../connection.ts'
import { exitCodes } from '../errors.ts'
import { count, counted, duration, since } from '../show/numbers.ts'
import { percent } from '../show/progress.ts'
import { nameColumn, table, tableWidth } from '../show/table.ts'
import { progressText, reasonText } from '../show/task.ts'
import { answer, instanceColours, shown, styled } from '../terminal.ts'
import { agreed, yesFlag } from './control.ts'

export const status: Command = {
  operands: '[INSTANCE]',
  operandCount: [0, 1],
  details:
    'Shows all instances: service nodes, workers and producers. Of one instance it also shows the leases that it holds and\n' +
    'its last attempts.',
  flags: {
    search: { kind: 'text', placeholder: 'TEXT', description: 'only instances whose name contains this' },
    status: {
      kind: 'text',
      placeholder: 'STATUS',
      choices: instanceStates,
      description: 'only instances with this status',
    },
    sort: {
      kind: 'text',
      placeholder: 'ORDER',
      choices: instanceSorts,
      otherwise: 'name',
      description: 'by name, the last seen first, or those with most leases first',
    },
    ...connectionFlags,
  },
  examples: [
    { line: 'baton status', says: 'Everyone' },
    { line: 'baton status --status lost', says: 'Workers that died with leases' },
    { line: 'baton status loader-7', says: 'The leases, last attempts and totals of one worker' },
  ],
  run: async (given) => {
    const client = connect(given)
    const [instanceId] = given.operands
    if (instanceId === undefined) {
      const instances = await allInstances(client, given)
      answer(given, { instances }, () => instanceTable(instances))
    } else {
      const [instance, { leases }, { attempts }] = await Promise.all([
        client.instanceStatus(instanceId),
        client.instanceLeases(instanceId).catch(unlessRefused({ leases: [], next: null })),
        client.instanceAttempts(instanceId).catch(unlessRefused({ since: '', attempts: [] })),
      ])
      answer(given, { ...instance, heldLeases: leases, lastAttempts: attempts }, () =>
        [instanceView(instance), ...leaseLines(leases), ...attemptLines(attempts)].join('\n'),
      )
    }
    return exitCodes.ok
  },
}

/** Every token may see the status of an instance; its leases and attempts are for viewers. */
const unlessRefused =
  <Answer>(otherwise: Answer) =>
  (error: unknown): Answer => {
    if (error instanceof ProblemError && error.code === 'token_refused') return otherwise
    throw error
  }

async function allInstances(client: BatonClient, given: Arguments): Promise<InstanceStatus[]> {
  const filter: InstanceListOptions = {
    search: given.text('search'),
    status: given.text('status') as InstanceListOptions['status'],
    sort: given.text('sort') as InstanceListOptions['sort'],
  }
  return (await readPages('instances', (page) => client.instances({ ...filter, ...page }))).rows
}

function nodeFacts({ leadsSince, load = 0 }: InstanceStatus): [string, string][] {
  return [
    ['leads', leadsSince === undefined ? 'no' : `since ${leadsSince} (${since(leadsSince)})`],
    ['load', `${Math.round(load * 100)} %`],
  ]
}

function instanceView(instance: InstanceStatus): string {
  const {
    instanceId,
    role,
    status: state,
    totals,
    leases,
    tasks = [],
    pausedAt,
    version,
    firstSeenAt,
    lastSeenAt,
  } = instance
  const facts: [string, string][] = [
    ['role', role],
    ['status', styled(instanceColours[state], state)],
    ...(pausedAt === undefined
      ? []
      : [['paused', `since ${pausedAt} (${since(pausedAt)})`] as [string, string]]),
    ...(version === undefined ? [] : [['version', version] as [string, string]]),
    ...(role === 'service' ? nodeFacts(instance) : []),
    ['first seen', `${firstSeenAt} (${since(firstSeenAt)})`],
    ['last seen', `${lastSeenAt} (${since(lastSeenAt)})`],
    ['leases', count(leases)],
    ['handed out', `${counted(totals.partitions, 'partition')}, ${counted(totals.records, 'record')}`],
    [
      'settled',
      `${count(totals.done)} done, ${count(totals.failed)} failed, ${count(totals.released)} released`,
    ],
    [
      'not settled',
      `${counted(totals.expired, 'lease')} expired, ${count(totals.revoked)} revoked by an operator`,
    ],
    [
      'called back',
      `${counted(totals.calledBack, 'partition')} in ${counted(totals.callBacks, 'call-back')}`,
    ],
  ]
  const lines = facts.map(([name, value]) => `  ${name.padEnd(12)}${value}`)
  const produced = tasks.map(
    ({ taskId, state: taskState, partitions, records }) =>
      `  task        ${shown(taskId)}: ${taskState}, ${count(partitions.done)} of ${counted(partitions.total, 'partition')}` +
      `${records.total > 0 ? `, ${percent(records.done, records.total)} of ${counted(records.total, 'record')}` : ''}`,
  )
  return [styled('bold', shown(instanceId)), ...lines, ...produced].join('\n')
}

/** The answer has the first page, which is more than a terminal shows. */
const MOST_LEASES = 20
const MOST_ATTEMPTS = 10

function leaseLines(leases: readonly HeldLease[]): string[] {
  const lines = leases.slice(0, MOST_LEASES).map((lease) => {
    const { partition_name, attempt, record_count, leasedAt, expiresAt, progress } = lease
    const done = progress === undefined ? '' : `, ${progressText(progress, record_count)}`
    const left = Math.max(0, Date.parse(expiresAt) - Date.now()) / 1000
    return `  lease       ${shown(partition_name)}: attempt ${attempt}, ${counted(record_count, 'record')}, since ${since(leasedAt)}, expires in ${duration(left)}${done}`
  })
  const more = leases.length - lines.length
  return more > 0 ? [...lines, `  …           ${count(more)} more`] : lines
}

function attemptLines(attempts: readonly InstanceAttempt[]): string[] {
  return attempts.slice(0, MOST_ATTEMPTS).map((ended) => {
    const { partition_name, attempt, outcome, reason, startedAt, endedAt } = ended
    const took = duration((Date.parse(endedAt) - Date.parse(startedAt)) / 1000)
    const why = reason === null ? '' : `: ${reasonText(reason, 100)}`
    return `  ${outcome.padEnd(12)}${shown(partition_name)}: attempt ${attempt}, ${since(endedAt)}, took ${took}${why}`
  })
}

export function instanceTable(instances: readonly InstanceStatus[], width = tableWidth()): string {
  return table(
    instances,
    [
      nameColumn('INSTANCE', ({ instanceId }) => instanceId),
      { title: 'ROLE', of: ({ role }) => role },
      {
        title: 'STATUS',
        of: ({ status: state, pausedAt }) =>
          `${styled(instanceColours[state], state)}${pausedAt === undefined ? '' : ', paused'}`,
      },
      { title: 'LEASES', of: ({ leases }) => count(leases), align: 'right' },
      { title: 'DONE', of: ({ totals }) => count(totals.done), align: 'right' },
      { title: 'FAILED', of: ({ totals }) => count(totals.failed), align: 'right' },
      { title: 'RECORDS', of: ({ totals }) => count(totals.records), align: 'right' },
      { title: 'SEEN', of: ({ lastSeenAt }) => since(lastSeenAt) },
    ],
    width,
  )
}

export const release: Command = {
  operands: 'INSTANCE | TASK PARTITION',
  operandCount: [1, 2],
  details:
    'Revokes all leases of an instance, or the lease of one partition, for a worker that died or hangs: the partitions are\n' +
    'ready at once, instead of when the leases expire. Each revoked lease counts as an attempt, like an expiry, and cannot be\n' +
    'renewed. A worker that is still alive continues until it renews or settles, so a partition may be processed twice.',
  flags: { ...yesFlag, ...connectionFlags },
  examples: [
    { line: 'baton release loader-7', says: 'The machine of the worker failed' },
    { line: 'baton release orders-2026-03 orders-2026-03-0-7', says: 'One partition hangs' },
  ],
  run: async (given) => {
    const [first = '', partitionName] = given.operands
    const name = partitionName ?? first
    const what = partitionName === undefined ? 'all its leases' : 'its lease'
    const question = `${shown(name)}: Revoke ${what}? If the worker is alive, its work is done twice.`
    const refusal = await agreed(question, given)
    if (refusal !== undefined) return refusal
    const client = connect(given)
    const revoked =
      partitionName === undefined
        ? await client.releaseInstance(first)
        : await client.releasePartition(first, partitionName)
    const parked = revoked.parked === 0 ? '' : `, ${counted(revoked.parked, 'partition')} parked`
    answer(given, revoked, () => `${shown(name)}: ${counted(revoked.released, 'lease')} revoked${parked}`)
    return exitCodes.ok
  },
}

export const pauseInstance: Command = {
  operands: 'INSTANCE',
  operandCount: [1, 1],
  details:
    'Hands out nothing to an instance until it is resumed. Its leases run on, and it may renew and settle them. The pause is\n' +
    'stored: a restart of the service or of the worker does not end it.',
  flags: connectionFlags,
  examples: [{ line: 'baton pause-instance loader-7', says: 'Look at a worker that fails everything' }],
  run: (given) => pauseOrResume(given, true),
}

export const resumeInstance: Command = {
  operands: 'INSTANCE',
  operandCount: [1, 1],
  details: 'Ends the pause of an instance.',
  flags: connectionFlags,
  examples: [{ line: 'baton resume-instance loader-7', says: 'It gets partitions again' }],
  run: (given) => pauseOrResume(given, false),
}

async function pauseOrResume(given: Arguments, paused: boolean): Promise<number> {
  const instanceId = given.operands[0] ?? ''
  const client = connect(given)
  const instance = await (paused ? client.pauseInstance(instanceId) : client.resumeInstance(instanceId))
  const holds = instance.leases === 0 ? '' : `; it still holds ${counted(instance.leases, 'lease')}`
  answer(given, instance, () => `${shown(instanceId)}: ${paused ? `paused${holds}` : 'resumed'}`)
  return exitCodes.ok
}
