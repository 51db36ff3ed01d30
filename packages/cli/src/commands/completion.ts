import type { Command, CommandEntry } from '../command.ts'
import { type CompletedCommand, completionScripts } from '../completion-scripts.ts'
import { exitCodes } from '../exit-codes.ts'
import { UsageError } from '../usage-error.ts'

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
