import type { Command, Flag } from '../../packages/cli/src/command-line.ts'
import { commands } from '../../packages/cli/src/commands.ts'
import { flagMeaning, flagUsage, usageOf } from '../../packages/cli/src/help.ts'
import { code, table } from './table.ts'

/** A flag that this many commands have in the same words is explained once. */
const OF_MANY = 4

interface Listed {
  readonly name: string
  readonly summary: string
  /** Null if the command reads its command line itself. */
  readonly command: Command | null
}

async function listed(): Promise<Listed[]> {
  return Promise.all(
    commands.map(async ({ name, summary, load }) => {
      const command = await load()
      return { name, summary, command: command.hasOwnLine === true ? null : command }
    }),
  )
}

type Row = readonly [usage: string, meaning: string]

const rowOf = (name: string, flag: Flag): Row => [code(flagUsage(name, flag)), flagMeaning(flag)]
const rowsOf = ({ flags }: Command): Row[] => Object.entries(flags).map(([name, flag]) => rowOf(name, flag))

/** The rows of flags that many commands share, in the order in which they first appear. */
function sharedRows(all: readonly Listed[]): Row[] {
  const rows = all.flatMap(({ command }) => (command === null ? [] : rowsOf(command)))
  const shared = Map.groupBy(rows, (row) => row.join(' '))
  return [...shared.values()].flatMap(([row, ...others]) =>
    row !== undefined && others.length + 1 >= OF_MANY ? [row] : [],
  )
}

export async function sharedFlagsTable(): Promise<string> {
  return table(['flag', 'meaning'], sharedRows(await listed()))
}

/** Each command with its usage, its summary, and the names of the flags that are its own. */
export async function commandsTable(): Promise<string> {
  const all = await listed()
  const shared = new Set(sharedRows(all).map((row) => row.join(' ')))
  return table(
    ['command', 'what it does', 'flags of its own'],
    all.map(({ name, summary, command }) => {
      if (command === null) return [code(`baton ${name}`), summary, 'the settings']
      const own = Object.entries(command.flags)
        .filter(([flag, spec]) => !shared.has(rowOf(flag, spec).join(' ')))
        .map(([flag]) => code(`--${flag}`))
      return [code(usageOf(name, command).replace(' [FLAGS]', '')), summary, own.join(' ')]
    }),
  )
}
