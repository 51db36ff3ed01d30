import { didYouMean } from '@baton/protocol/core'
import { version } from '@baton/server/version'
import { Arguments } from './command-line.ts'
import { commands, unlistedCommands } from './commands.ts'
import { exitCodes, UsageError } from './errors.ts'
import { commandHelp, overview } from './help.ts'
import { note, print } from './terminal.ts'

async function main(argv: readonly string[]): Promise<number> {
  const [name, ...others] = argv
  if (name === undefined) {
    note(overview(version).trimEnd())
    return exitCodes.usage
  }
  if (name === '--version' || name === '-v' || name === 'version') {
    print(version)
    return exitCodes.ok
  }
  if (name === '--help' || name === '-h') {
    print(overview(version).trimEnd())
    return exitCodes.ok
  }
  return name === 'help' ? help(others[0]) : runCommand(name, others)
}

async function help(name: string | undefined): Promise<number> {
  return name === undefined ? main(['--help']) : runCommand(name, ['--help'])
}

async function runCommand(name: string, argv: readonly string[]): Promise<number> {
  const command = await entryOf(name).load()
  if (command.hasOwnLine === true) return command.run(argv)
  const { flags, takesCommand = false, operandsBeforeCommand = false } = command
  const own = takesCommand && argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv
  if (own.includes('--help') || own.includes('-h')) {
    print(commandHelp(name, command).trimEnd())
    return exitCodes.ok
  }
  const given = Arguments.read(flags, argv, takesCommand, operandsBeforeCommand)
  const [least, most] = command.operandCount
  if (given.operands.length < least) throw new UsageError(`${name} requires ${command.operands}`)
  if (given.operands.length > most) {
    throw new UsageError(`${JSON.stringify(given.operands[most])} is an unexpected operand of ${name}`)
  }
  return command.run(given)
}

function entryOf(name: string) {
  const entry = [...commands, ...unlistedCommands].find((candidate) => candidate.name === name)
  if (entry !== undefined) return entry
  if (name.startsWith('-')) {
    // Omit the value, which may be a token.
    const [flag] = name.split('=', 1)
    throw new UsageError(`${flag} must come after the command: baton COMMAND ${flag}`)
  }
  const meant = didYouMean(
    name,
    commands.map((candidate) => candidate.name),
  )
  throw new UsageError(`${name} is not a command${meant === undefined ? '' : `; did you mean ${meant}?`}`)
}

/** Runs the command line and sets the exit code. */
export async function dispatch(argv: readonly string[]): Promise<void> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // The service only prints where it listens, and continues without that line.
    if (argv[0] === 'serve') return
    // A reader such as head closes the pipe when it has read enough. That is not an error. The exit code is
    // that of the command if it has one already, or else 0.
    if (error.code === 'EPIPE') process.exit()
    note(`baton: standard output cannot be written (${error.code})`)
    process.exit(exitCodes.refused)
  })
  // Without its log, a worker continues: ending it would leave its commands running without leases.
  process.stderr.on('error', () => {})
  try {
    process.exitCode = await main(argv)
  } catch (error) {
    // Loaded on demand, because it imports the client for its error classes.
    const { explain } = await import('./explain-error.ts')
    const { text, exitCode } = explain(error, argv)
    note(text)
    process.exitCode = exitCode
  }
}
