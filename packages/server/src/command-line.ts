import { didYouMean } from '@baton/protocol'
import { flagOf, type SettingName, settingNames, settingOf, variableOf } from './config.ts'
import { SettingsError } from './settings-error.ts'

/** What --help prints: the table of all settings, made from their one schema. */
export function helpText(version: string): string {
  const rows = settingNames.map((name) => ({
    flag: `${flagOf(name)}${placeholder(name)}`,
    variable: variableOf(name),
    standard: shownDefault(name),
    meaning: settingOf(name).description,
  }))
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
    'A flag beats the environment variable, which beats the default.',
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
  /** The texts behind the flags; where a flag stands twice, the last counts. */
  readonly given: ReadonlyMap<SettingName, string>
}

const settingByFlag = new Map(settingNames.map((name) => [flagOf(name), name]))
const otherFlags = ['--help', '--version']

/** Everything that cannot be read is reported at once. */
export function readCommandLine(args: readonly string[]): CommandLine {
  const given = new Map<SettingName, string>()
  const faults: string[] = []
  let asksFor: CommandLine['asksFor'] = 'service'
  for (let at = 0; at < args.length; at += 1) {
    const argument = args[at] ?? ''
    if (argument === '--help' || argument === '-h') asksFor = 'help'
    else if (argument === '--version' || argument === '-v') asksFor = asksFor === 'help' ? 'help' : 'version'
    else if (!argument.startsWith('-')) faults.push(`${argument} is not a flag`)
    else {
      const { setting, fault, consumed } = readFlag(argument, args[at + 1])
      if (setting !== undefined) given.set(setting.name, setting.text)
      if (fault !== undefined) faults.push(fault)
      at += consumed
    }
  }
  if (faults.length > 0) throw usage(faults)
  return { asksFor, given }
}

interface ReadFlag {
  readonly setting?: { readonly name: SettingName; readonly text: string }
  readonly fault?: string
  /** Arguments behind the flag that belong to it. */
  readonly consumed: number
}

/** Understands `--port 1`, `--port=1`, `--level-barrier`, `--level-barrier=false` and `--no-level-barrier`. */
function readFlag(argument: string, next: string | undefined): ReadFlag {
  const equals = argument.indexOf('=')
  const flag = equals === -1 ? argument : argument.slice(0, equals)
  const attached = equals === -1 ? undefined : argument.slice(equals + 1)
  const denied = flag.startsWith('--no-') ? settingByFlag.get(`--${flag.slice(5)}`) : undefined
  if (denied !== undefined && isSwitch(denied) && attached === undefined) {
    return { setting: { name: denied, text: 'false' }, consumed: 0 }
  }
  const name = settingByFlag.get(flag)
  // A value may begin with a hyphen, but never with two: that is the next flag, and this one's value is missing.
  const value = next === undefined || next.startsWith('--') ? undefined : next
  if (name === undefined) {
    // What follows is probably meant as its value, and would only be called no flag either.
    return { fault: unknownFlag(flag), consumed: attached === undefined && value !== undefined ? 1 : 0 }
  }
  if (attached !== undefined) return { setting: { name, text: attached }, consumed: 0 }
  if (isSwitch(name)) {
    const spelledOut = next === 'true' || next === 'false'
    return { setting: { name, text: spelledOut ? next : 'true' }, consumed: spelledOut ? 1 : 0 }
  }
  if (value === undefined) return { fault: `${flag} needs a value`, consumed: 0 }
  return { setting: { name, text: value }, consumed: 1 }
}

const isSwitch = (name: SettingName) => settingOf(name).type === 'boolean'

function unknownFlag(flag: string): string {
  const meant = didYouMean(flag, [...settingByFlag.keys(), ...otherFlags])
  return `${flag} is not a flag${meant === undefined ? '' : `; did you mean ${meant}?`}`
}

/** The last line says where to look. */
function usage(faults: readonly string[]): SettingsError {
  const last = faults.at(-1) ?? ''
  const stop = last.endsWith('?') ? '' : ';'
  return new SettingsError([...faults.slice(0, -1), `${last}${stop} --help lists all flags`], 2)
}
