import type { Command } from './command.ts'
import { commands } from './commands.ts'
import type { Flag } from './flag.ts'
import { styled } from './terminal.ts'

const heading = (text: string) => styled('bold', text)

/** Two columns, the first as wide as its longest entry. */
function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([first]) => first.length))
  return rows.map(([first, second]) => `  ${first.padEnd(width)}  ${second}`).join('\n')
}

export function overview(version: string): string {
  return [
    `${heading('baton')} ${version}: hands the partitions of a computed table to a fleet of workers`,
    '',
    heading('Usage'),
    '  baton COMMAND [OPERANDS] [FLAGS]',
    '',
    heading('Commands'),
    columns(commands.map(({ name, summary }) => [name, summary])),
    '',
    heading('A first hand-off'),
    columns([
      ['baton serve', 'the service, on http://127.0.0.1:7070'],
      ['baton call-back partitions.ndjson', 'hand a task over'],
      ['baton work --concurrency 4 -- ./load.sh', 'work on it'],
      ['baton tasks --watch', 'see how far it is'],
    ]),
    '',
    '`baton COMMAND --help` tells more about a command. BATON_URL and BATON_TOKEN say where the service is.',
    '',
  ].join('\n')
}

export function commandHelp(name: string, command: Command): string {
  const usage = `baton ${name}${command.operands === '' ? '' : ` ${command.operands}`} [FLAGS]`
  return [
    heading('Usage'),
    `  ${command.takesCommand === true ? `baton ${name} [FLAGS] ${command.operands}` : usage}`,
    '',
    command.details,
    '',
    heading('Flags'),
    columns([
      ...Object.entries(command.flags).map(
        ([flag, spec]) => [flagUsage(flag, spec), flagMeaning(spec)] as const,
      ),
      ['--help', 'this text'],
    ]),
    '',
    heading('Examples'),
    ...command.examples.flatMap(({ line, says }) => [`  # ${says}`, `  ${line}`]),
    '',
  ].join('\n')
}

function flagUsage(name: string, { short, placeholder }: Flag): string {
  return `${short === undefined ? '' : `-${short}, `}--${name}${placeholder === undefined ? '' : ` ${placeholder}`}`
}

function flagMeaning(flag: Flag): string {
  const { description, choices, variable } = flag
  const otherwise = flag.otherwise ?? flag.default
  const extras = [
    ...(choices === undefined ? [] : [choices.join(', ')]),
    ...(otherwise === undefined ? [] : [`default ${otherwise}`]),
    ...(variable === undefined ? [] : [variable]),
  ]
  return extras.length === 0 ? description : `${description} (${extras.join('; ')})`
}
