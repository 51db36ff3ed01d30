import type { ThroughputStep } from '@baton/client'
import { throughputSteps } from '@baton/protocol/core'
import type { Command } from '../command.ts'
import { connect, connectionFlags } from '../connection.ts'
import { exitCodes } from '../errors.ts'
import { shown } from '../show/table.ts'
import { throughputView } from '../show/throughput.ts'
import { print, printJson } from '../terminal.ts'

/** The default period. */
const USUAL_MILLIS: Readonly<Record<ThroughputStep, number>> = { minute: 3_600_000, hour: 86_400_000 }

const time = (description: string, otherwise: string) =>
  ({ kind: 'text', placeholder: 'TIME', description, otherwise }) as const

export const throughput: Command = {
  operands: 'TASK',
  operandCount: [1, 1],
  details:
    'Shows what became done of a task, by minute or by hour: partitions and their records. The service keeps minutes for a\n' +
    'day and hours for as long as the partitions of finished tasks.',
  flags: {
    step: {
      kind: 'text',
      placeholder: 'STEP',
      choices: throughputSteps,
      default: 'minute',
      description: 'how long one step is',
    },
    from: time('begin at this time, like 2026-03-01T12:00:00Z', 'an hour ago, with hours a day ago'),
    to: time('end before this time', 'now'),
    'by-level': { kind: 'switch', description: 'tell levels apart' },
    ...connectionFlags,
  },
  examples: [
    { line: 'baton throughput orders-2026-03', says: 'The last hour' },
    { line: 'baton throughput orders-2026-03 --step hour --by-level', says: 'The last day, level by level' },
  ],
  run: async (given) => {
    const step = given.textOrDefault('step') as ThroughputStep
    const to = given.text('to')
    const end = to === undefined ? Date.now() : Date.parse(to)
    const answer = await connect(given).throughput(given.operands[0] ?? '', {
      step,
      // If the end is not a valid time, the service reports it.
      from: given.text('from') ?? (Number.isNaN(end) ? undefined : new Date(end - USUAL_MILLIS[step])),
      to,
      by: given.switch('by-level') ? 'level' : undefined,
    })
    if (given.switch('json')) printJson(answer)
    else if (answer.points.length > 0) print(throughputView(answer))
    else print(`${shown(answer.taskId)}: nothing became done between ${answer.from} and ${answer.to}`)
    return exitCodes.ok
  },
}
