import type { BatonClient, InstanceStatus } from '@baton/client'
import { MAX_PAGE_LENGTH } from '@baton/protocol/core'
import type { Command } from '../command.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes } from '../errors.ts'
import { percent } from '../show/bar.ts'
import { count, counted, since } from '../show/numbers.ts'
import { instanceTable } from '../show/partition-table.ts'
import { shown } from '../show/table.ts'
import { instanceColours, print, printJson, styled } from '../terminal.ts'

export const status: Command = {
  operands: '[INSTANCE]',
  operandCount: [0, 1],
  details: 'Shows one instance, or all that are known: service nodes, workers and producers.',
  flags: connectionFlags,
  examples: [
    { line: 'baton status', says: 'Everyone' },
    { line: 'baton status loader-7', says: 'What one worker holds and did' },
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
