import { type BatonClient, BatonError } from '@baton/client'
import type { Command } from '../command.ts'
import { connect, placeFlags } from '../connection.ts'
import { exitCodes } from '../exit-codes.ts'

/** Whoever presses Tab does not wait longer. */
const PATIENCE_SECONDS = 2
const MOST_TASKS = 100
/** A task names its tables in its own view, which is read task by task. */
const TASKS_ASKED_FOR_TABLES = 10

const kinds: Readonly<Record<string, (client: BatonClient, begun: string) => Promise<Iterable<string>>>> = {
  tasks: async (client, begun) => {
    const { tasks } = await client.tasks({ search: begun, limit: MOST_TASKS })
    return tasks.map(({ taskId }) => taskId)
  },
  tables: async (client) => {
    const { tasks } = await client.tasks({ limit: TASKS_ASKED_FOR_TABLES })
    const views = await Promise.all(tasks.map(({ taskId }) => client.task(taskId)))
    return new Set(views.flatMap(({ computeTables }) => computeTables))
  },
  instances: async (client) => {
    const { instances } = await client.instances({ limit: MOST_TASKS })
    return instances.map(({ instanceId }) => instanceId)
  },
}

/** For the scripts of `baton completion`: names that the service knows. Where it cannot be asked, there are none. */
export const complete: Command = {
  operands: 'tasks|tables|instances [BEGINNING]',
  operandCount: [1, 2],
  details: 'Prints the names of tasks, compute tables or instances that begin so, one per line.',
  flags: placeFlags,
  examples: [{ line: 'baton complete tasks orders', says: 'What a shell asks when Tab is pressed' }],
  run: async (given) => {
    const [kind = '', begun = ''] = given.operands
    const client = connect(given, {
      retryForSeconds: 0,
      timeoutSeconds: PATIENCE_SECONDS,
      onFailure: () => {},
    })
    try {
      const names = (await kinds[kind]?.(client, begun)) ?? []
      for (const name of names) if (isPlain(name) && name.startsWith(begun)) process.stdout.write(`${name}\n`)
    } catch (error) {
      if (!(error instanceof BatonError)) throw error
    }
    return exitCodes.ok
  },
}

/** Shells split and expand what is completed: a name with blanks or quotes has to be typed. */
function isPlain(name: string): boolean {
  return /^[\w.:@%+=/,-]+$/.test(name)
}
