import { type BatonClient, BatonError } from '@baton/client'
import type { Command, CommandEntry } from '../command.ts'
import { type CompletedCommand, completionScripts } from '../completion-scripts.ts'
import { connect, placeFlags } from '../connection.ts'
import { exitCodes, UsageError } from '../errors.ts'

/** The longest time to wait for the service after Tab is pressed. */
const PATIENCE_SECONDS = 2
const MOST_TASKS = 100
/** The tables of a task are only in its own view, so this is one request per task. */
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

/**
 * Lists names of the service, for the scripts of `baton completion`. Prints nothing if the service cannot be
 * reached.
 */
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

/** Shells split and expand completed text, so names with blanks or quotes are not completed. */
function isPlain(name: string): boolean {
  return /^[\w.:@%+=/,-]+$/.test(name)
}

const helpFlag = { kind: 'switch', description: 'help' } as const

async function completed({ name, summary, load }: CommandEntry): Promise<CompletedCommand> {
  const command = await load()
  return command.hasOwnLine === true
    ? { name, summary, flags: await command.completedFlags(), operands: '' }
    : { name, summary, flags: { ...command.flags, help: helpFlag }, operands: command.operands }
}

export function completionOf(commands: readonly CommandEntry[]): Command {
  return {
    operands: 'bash|zsh|fish',
    operandCount: [1, 1],
    details:
      'Prints a script that lets the shell complete the commands and flags of baton, the states that a flag takes, and,\n' +
      'where BATON_URL leads to a service, the names of its tasks, compute tables and instances.',
    flags: {},
    examples: [
      { line: 'source <(baton completion bash)', says: 'In ~/.bashrc' },
      { line: 'source <(baton completion zsh)', says: 'In ~/.zshrc, after compinit' },
      { line: 'baton completion fish > ~/.config/fish/completions/baton.fish', says: 'For fish' },
    ],
    run: async (given) => {
      const write = completionScripts[given.operands[0] ?? '']
      if (write === undefined) throw new UsageError('completion is for bash, zsh or fish')
      const loaded = await Promise.all(commands.map(completed))
      process.stdout.write(write(loaded))
      return exitCodes.ok
    },
  }
}
