import { parseArgs } from 'node:util'
import { didYouMean } from '@baton/protocol'
import { flagOf, type SettingName, settingNames, settingOf, variableOf } from './config.ts'
import { SettingsError } from './settings-files.ts'

export const settingRows = () =>
  settingNames.map((name) => ({
    flag: `${flagOf(name)}${placeholder(name)}`,
    variable: variableOf(name),
    standard: shownDefault(name),
    meaning: settingOf(name).description,
  }))

/** The text of --help: a table of all settings, generated from their schema. */
export function helpText(version: string): string {
  const rows = settingRows()
  const width = (column: 'flag' | 'variable') => Math.max(...rows.map((row) => row[column].length)) + 2
  const [flagWidth, variableWidth] = [width('flag'), width('variable')]
  const lines = rows.flatMap(({ flag, variable, standard, meaning }) => [
    `  ${flag.padEnd(flagWidth)}${variable.padEnd(variableWidth)}${standard}`,
    `      ${meaning}`,
  ])
  return [
    `Baton ${version}`,
    'Hands the partitions of a computed table to a fleet of workers, each to exactly one at a time.',
    '',
    'Flags override environment variables, which override defaults.',
    '',
    `  ${'flag'.padEnd(flagWidth)}${'environment'.padEnd(variableWidth)}default`,
    ...lines,
    `  ${'--version'.padEnd(flagWidth)}prints the version`,
    `  ${'--help'.padEnd(flagWidth)}prints this`,
    '',
  ].join('\n')
}

function placeholder(name: SettingName): string {
  const { type, enum: choices } = settingOf(name)
  if (choices !== undefined) return ` ${choices.length > 3 ? '<level>' : choices.join('|')}`
  if (type === 'boolean') return ''
  if (type === 'integer' || type === 'number') return ' <number>'
  return type === 'array' ? ' <list>' : ' <text>'
}

function shownDefault(name: SettingName): string {
  const { default: standard, shownDefault: shown } = settingOf(name)
  return shown ?? (standard === null ? 'none' : String(standard))
}

interface CommandLine {
  readonly asksFor: 'service' | 'help' | 'version'
  /** The values of the flags. If a flag is repeated, the last one counts. */
  readonly given: ReadonlyMap<SettingName, string>
}

const settingByFlag = new Map(settingNames.map((name) => [flagOf(name), name]))
const otherFlags = ['--help', '--version']

const isSwitch = (name: SettingName) => settingOf(name).type === 'boolean'

const options = Object.fromEntries([
  ...settingNames.map((name) => {
    const type: 'boolean' | 'string' = isSwitch(name) ? 'boolean' : 'string'
    return [flagOf(name).slice(2), { type }] as const
  }),
  ['help', { type: 'boolean', short: 'h' }] as const,
  ['version', { type: 'boolean', short: 'v' }] as const,
])

/** Also `--port=1`, `--level-barrier=false` and `--no-level-barrier`. All faults are reported at once. */
export function readCommandLine(args: readonly string[]): CommandLine {
  const read: MutableCommandLine = { asksFor: 'service', given: new Map(), faults: [] }
  readFlags([...args], read)
  if (read.faults.length > 0) throw usage(read.faults)
  return read
}

interface MutableCommandLine extends CommandLine {
  asksFor: CommandLine['asksFor']
  readonly given: Map<SettingName, string>
  readonly faults: string[]
}

function readFlags(args: string[], read: MutableCommandLine): void {
  // Not strict: strict parsing stops at the first fault, and its messages are meant for programmers.
  const { tokens } = parseArgs({ args, options, strict: false, tokens: true })
  let before: SettingName | 'unknown flag' | undefined
  for (const token of tokens) {
    if (token.kind !== 'option') {
      readOperand(token.kind === 'positional' ? token.value : '--', before, read)
      before = undefined
    } else if (token.name === 'help') read.asksFor = 'help'
    else if (token.name === 'version') read.asksFor = read.asksFor === 'help' ? 'help' : 'version'
    // A value may begin with one hyphen. With two it is the next flag, and this flag's value is missing.
    else if (!token.inlineValue && token.value?.startsWith('--')) {
      read.faults.push(`${token.rawName} requires a value`)
      readFlags(args.slice(token.index + 1), read)
      return
    } else before = readFlag(token.rawName, token.value, read)
  }
}

function readFlag(flag: string, value: string | undefined, { given, faults }: MutableCommandLine) {
  const denied = flag.startsWith('--no-') ? settingByFlag.get(`--${flag.slice(5)}`) : undefined
  const name = settingByFlag.get(flag)
  if (denied !== undefined && isSwitch(denied) && value === undefined) given.set(denied, 'false')
  else if (name === undefined) faults.push(unknownFlag(flag))
  else if (value !== undefined) given.set(name, value)
  else if (isSwitch(name)) given.set(name, 'true')
  else faults.push(`${flag} requires a value`)
  return name ?? (denied === undefined ? 'unknown flag' : undefined)
}

/** Reads the value after a switch, and ignores the one after an unknown flag. Anything else is a fault. */
function readOperand(
  text: string,
  before: SettingName | 'unknown flag' | undefined,
  { given, faults }: MutableCommandLine,
): void {
  if (before === 'unknown flag') return
  const isOfSwitch = before !== undefined && isSwitch(before) && (text === 'true' || text === 'false')
  if (isOfSwitch) given.set(before, text)
  else faults.push(`${text} is not a flag`)
}

function unknownFlag(flag: string): string {
  const meant = didYouMean(flag, [...settingByFlag.keys(), ...otherFlags])
  return `${flag} is not a flag${meant === undefined ? '' : `; did you mean ${meant}?`}`
}

/** The last line mentions --help. */
function usage(faults: readonly string[]): SettingsError {
  const last = faults.at(-1) ?? ''
  const stop = last.endsWith('?') ? '' : ';'
  return new SettingsError([...faults.slice(0, -1), `${last}${stop} --help lists all flags`], 2)
}
