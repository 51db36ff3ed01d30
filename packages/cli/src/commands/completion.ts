import type { Command } from '../command.ts'
import { commands } from '../commands.ts'
import { completionScripts } from '../completion-scripts.ts'
import { exitCodes } from '../exit-codes.ts'
import { UsageError } from '../usage-error.ts'

export const completion: Command = {
  operands: 'bash|zsh|fish',
  operandCount: [1, 1],
  details: 'Prints a script that lets the shell complete the commands and flags of baton.',
  flags: {},
  examples: [
    { line: 'source <(baton completion bash)', says: 'In ~/.bashrc' },
    { line: 'source <(baton completion zsh)', says: 'In ~/.zshrc, after compinit' },
    { line: 'baton completion fish > ~/.config/fish/completions/baton.fish', says: 'For fish' },
  ],
  run: async (given) => {
    const write = completionScripts[given.operands[0] ?? '']
    if (write === undefined) throw new UsageError('completion is for bash, zsh or fish')
    const loaded = await Promise.all(
      commands.map(async ({ name, summary, load }) => ({ name, summary, flags: await flagsOf(name, load) })),
    )
    process.stdout.write(write(loaded))
    return exitCodes.ok
  },
}

/** The service keeps its settings to itself until it is asked. */
async function flagsOf(name: string, load: () => Promise<Command>) {
  if (name !== 'serve')
    return { ...(await load()).flags, help: { kind: 'switch', description: 'help' } as const }
  const { flagOf, settingNames, settingOf } = await import('@baton/server/settings')
  return Object.fromEntries(
    settingNames.map((setting) => {
      const { description, type } = settingOf(setting)
      const kind = type === 'boolean' ? ('switch' as const) : ('text' as const)
      return [flagOf(setting).slice(2), { kind, description }]
    }),
  )
}
