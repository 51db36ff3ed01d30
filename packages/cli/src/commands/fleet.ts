import type { BatonClient, InstanceStatus, Scale } from '@baton/client'
import { MAX_PAGE_LENGTH, MAX_SCALE_TARGET_SECONDS } from '@baton/protocol/core'
import type { Command } from '../command-line.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes } from '../errors.ts'
import { count, counted, duration, rounded, since } from '../show/numbers.ts'
import { percent } from '../show/progress.ts'
import { nameColumn, table, tableWidth } from '../show/table.ts'
import { instanceColours, print, printJson, shown, styled } from '../terminal.ts'
import { agreed } from './control.ts'
import { chosenFlags, chosenIn } from './leases.ts'

export const status: Command = {
  operands: '[INSTANCE]',
  operandCount: [0, 1],
  details: 'Shows one instance or all instances: service nodes, workers and producers.',
  flags: connectionFlags,
  examples: [
    { line: 'baton status', says: 'Everyone' },
    { line: 'baton status loader-7', says: 'The leases and totals of one worker' },
  ],
  run: async (given) => {
    const client = connect(given)
    const [instanceId] = given.operands
    if (instanceId === undefined) {
      const instances = await allInstances(client)
      if (given.switch('json')) printJson({ instances })
      else print(instanceTable(instances))
    } else {
      const instance = await client.instanceStatus(instanceId)
      if (given.switch('json')) printJson(instance)
      else print(instanceView(instance))
    }
    return exitCodes.ok
  },
}

export const ready: Command = {
  operands: '',
  operandCount: [0, 0],
  details:
    'Waits until the service answers and its store accepts writes. Needs no token. With --timeout 0 it asks once, as a\nhealth check.',
  flags: connectionFlags,
  examples: [
    { line: 'baton ready && baton call-back partitions.ndjson', says: 'After the service was started' },
    { line: 'baton ready --timeout 0', says: 'The health check of a container' },
  ],
  run: async (given) => {
    await connect(given).ready()
    if (given.switch('json')) printJson({ status: 'ready' })
    else print('ready')
    return exitCodes.ok
  },
}

async function allInstances(client: BatonClient): Promise<InstanceStatus[]> {
  const instances: InstanceStatus[] = []
  let cursor: string | undefined
  do {
    const page = await client.instances({ limit: MAX_PAGE_LENGTH, cursor })
    instances.push(...page.instances)
    cursor = page.next ?? undefined
  } while (cursor !== undefined)
  return instances
}

function instanceView(instance: InstanceStatus): string {
  const {
    instanceId,
    role,
    status: state,
    totals,
    leases,
    tasks = [],
    version,
    firstSeenAt,
    lastSeenAt,
  } = instance
  const facts: [string, string][] = [
    ['role', role],
    ['status', styled(instanceColours[state], state)],
    ...(version === undefined ? [] : [['version', version] as [string, string]]),
    ['first seen', `${firstSeenAt} (${since(firstSeenAt)})`],
    ['last seen', `${lastSeenAt} (${since(lastSeenAt)})`],
    ['leases', count(leases)],
    ['handed out', `${counted(totals.partitions, 'partition')}, ${counted(totals.records, 'record')}`],
    [
      'settled',
      `${count(totals.done)} done, ${count(totals.failed)} failed, ${count(totals.released)} released`,
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

export function instanceTable(instances: readonly InstanceStatus[], width = tableWidth()): string {
  return table(
    instances,
    [
      nameColumn('INSTANCE', ({ instanceId }) => instanceId),
      { title: 'ROLE', of: ({ role }) => role },
      { title: 'STATUS', of: ({ status: state }) => styled(instanceColours[state], state) },
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
  operands: 'INSTANCE',
  operandCount: [1, 1],
  details:
    'Revokes all leases of an instance, for a worker that died or hangs: their partitions are ready at once, instead of\n' +
    'when the leases expire. Each revoked lease counts as an attempt, like an expiry. A worker that is still alive continues\n' +
    'until it renews or settles, so a partition may be processed twice.',
  flags: {
    yes: { kind: 'switch', short: 'y', description: 'do not ask for confirmation; required in scripts' },
    ...connectionFlags,
  },
  examples: [{ line: 'baton release loader-7', says: 'The machine of the worker failed' }],
  run: async (given) => {
    const instanceId = given.operands[0] ?? ''
    const question = `${shown(instanceId)}: Revoke all its leases? If the worker is alive, its work is done twice.`
    const refusal = await agreed(question, given)
    if (refusal !== undefined) return refusal
    const answer = await connect(given).releaseInstance(instanceId)
    if (given.switch('json')) printJson(answer)
    else {
      const parked = answer.parked === 0 ? '' : `, ${counted(answer.parked, 'partition')} parked`
      print(`${shown(instanceId)}: ${counted(answer.released, 'lease')} revoked${parked}`)
    }
    return exitCodes.ok
  },
}

export const scale: Command = {
  operands: '',
  operandCount: [0, 0],
  details:
    'Shows the backlog, the workers, and the number of workers that would finish the backlog within the target at the pace\n' +
    'of the attempts so far. Before five attempts have finished, there is no pace and no estimate.',
  flags: {
    ...chosenFlags,
    target: {
      kind: 'number',
      placeholder: 'SECONDS',
      minimum: 1,
      maximum: MAX_SCALE_TARGET_SECONDS,
      otherwise: 'setting of the service',
      description: 'the time within which the backlog should be finished',
    },
    ...connectionFlags,
  },
  examples: [
    { line: 'baton scale --target 600', says: 'Workers that finish everything in ten minutes' },
    { line: 'baton scale --table results.orders', says: 'For the workers of one table' },
    {
      line: 'kubectl scale deployment/loader --replicas "$(baton scale --json | jq .desiredWorkers)"',
      says: 'Scale a deployment by hand',
    },
  ],
  run: async (given) => {
    const answer = await connect(given).scale({ targetSeconds: given.number('target'), ...chosenIn(given) })
    if (given.switch('json')) printJson(answer)
    else print(scaleView(answer))
    return exitCodes.ok
  },
}

function scaleView(scale: Scale): string {
  const { backlog, workers, pace, tasks } = scale
  const { partitions, records } = backlog
  const states = (['ready', 'leased', 'delayed', 'held', 'parked'] as const)
    .filter((state) => partitions[state] > 0)
    .map((state) => `${count(partitions[state])} ${state}`)
  const others = (['elsewhere', 'lost'] as const)
    .filter((state) => workers[state] > 0)
    .map((state) => `, ${count(workers[state])} ${state}`)
  const facts: [string, string][] = [
    ['desired', `${styled('bold', counted(scale.desiredWorkers, 'worker'))}: ${reasonOf(scale)}`],
    ['workers', `${count(workers.busy)} busy, ${count(workers.idle)} idle${others.join('')}`],
    ['left', `${counted(partitions.left, 'partition')}, ${counted(records.left, 'record')}`],
    ...(states.length === 0 ? [] : [['partitions', states.join(', ')] as [string, string]]),
    ...(pace.partitionsPerSecond === null || pace.recordsPerSecond === null
      ? []
      : [['pace', `${rounded(pace.recordsPerSecond)} records/s`] as [string, string]]),
  ]
  const remarks = [
    ...(tasks.withOtherTables === 0
      ? []
      : [`${counted(tasks.withOtherTables, 'task')} that also have other tables, counted completely`]),
    ...(scale.complete
      ? []
      : ['there are more tasks or workers than were added up; the numbers are too low']),
  ]
  return [...facts.map(([name, value]) => `${name.padEnd(12)}${value}`), ...remarks].join('\n')
}

function reasonOf({ reason, limitedBy, targetSeconds, workSeconds, workers }: Scale): string {
  if (reason === 'no-backlog') return 'there is no backlog'
  if (reason === 'no-pace' || workSeconds === null) return 'no pace yet: too few attempts have finished'
  const work = `${duration(workSeconds)} of lease time`
  const each = workers.leasesPerWorker > 1 ? `, ${rounded(workers.leasesPerWorker)} at a time` : ''
  const base = `${work}${each}, to be finished in ${duration(targetSeconds)}`
  if (limitedBy === 'partitions')
    return `${base}; more workers would find no partition, and it may take longer`
  if (limitedBy === 'max-leases') return `${base}; maxLeases allows no more workers, and it may take longer`
  return base
}
