import type { Scale } from '@baton/client'
import { MAX_SCALE_TARGET_SECONDS } from '@baton/protocol/core'
import type { Command } from '../command-line.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes } from '../errors.ts'
import { count, counted, duration, rounded } from '../show/numbers.ts'
import { answer, styled } from '../terminal.ts'
import { chosenFlags, chosenIn } from './leases.ts'

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
    answer(given, { status: 'ready' }, () => 'ready')
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
    const found = await connect(given).scale({ targetSeconds: given.number('target'), ...chosenIn(given) })
    answer(given, found, () => scaleView(found))
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
