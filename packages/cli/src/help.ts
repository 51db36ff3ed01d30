import type { Command, Flag } from './command-line.ts'
import { commands } from './commands.ts'
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
      ['baton call-back partitions.ndjson', 'call back a task'],
      ['baton work --concurrency 4 -- ./load.sh', 'process its partitions'],
      ['baton tasks --watch', 'follow the progress'],
    ]),
    '',
    'Run `baton COMMAND --help` for the help of a command. BATON_URL and BATON_TOKEN select the service.',
    '',
  ].join('\n')
}

export function commandHelp(name: string, command: Command): string {
  return [
    heading('Usage'),
    `  ${usageOf(name, command)}`,
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

/** How the command is typed. */
export function usageOf(name: string, { operands, takesCommand }: Command): string {
  if (takesCommand === true) return `baton ${name} [FLAGS] ${operands}`
  return `baton ${name}${operands === '' ? '' : ` ${operands}`} [FLAGS]`
}

export function flagUsage(name: string, { short, placeholder }: Flag): string {
  return `${short === undefined ? '' : `-${short}, `}--${name}${placeholder === undefined ? '' : ` ${placeholder}`}`
}

export function flagMeaning(flag: Flag): string {
  const { description, choices, variable } = flag
  const otherwise = flag.otherwise ?? flag.default
  const extras = [
    ...(choices === undefined ? [] : [choices.join(', ')]),
    ...(otherwise === undefined ? [] : [`default ${otherwise}`]),
    ...(variable === undefined ? [] : [variable]),
  ]
  return extras.length === 0 ? description : `${description} (${extras.join('; ')})`
}
