import type { Command, CommandEntry } from '../command.ts'
import { completionScripts } from '../completion-scripts.ts'
import { exitCodes } from '../exit-codes.ts'
import type { Flags } from '../flag.ts'
import { UsageError } from '../usage-error.ts'

const helpFlag = { kind: 'switch', description: 'help' } as const

async function flagsOf(load: CommandEntry['load']): Promise<Flags> {
  const command = await load()
  return command.hasOwnLine === true ? command.completedFlags() : { ...command.flags, help: helpFlag }
}

export function completionOf(commands: readonly CommandEntry[]): Command {
  return {
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
        commands.map(async ({ name, summary, load }) => ({ name, summary, flags: await flagsOf(load) })),
      )
      process.stdout.write(write(loaded))
      return exitCodes.ok
    },
  }
}
