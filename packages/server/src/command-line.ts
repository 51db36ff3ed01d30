import { didYouMean } from '@baton/protocol'
import { flagOf, type SettingName, settingNames, settingOf } from './config.ts'
import { SettingsError } from './settings-error.ts'

export interface CommandLine {
  readonly asksFor: 'service' | 'help' | 'version'
  /** The texts behind the flags; where a flag stands twice, the last counts. */
  readonly given: ReadonlyMap<SettingName, string>
}

const settingByFlag = new Map(settingNames.map((name) => [flagOf(name), name]))
const otherFlags = ['--help', '--version']

export function readCommandLine(args: readonly string[]): CommandLine {
  const given = new Map<SettingName, string>()
  let asksFor: CommandLine['asksFor'] = 'service'
  for (let at = 0; at < args.length; at += 1) {
    const argument = args[at] ?? ''
    if (argument === '--help' || argument === '-h') asksFor = 'help'
    else if (argument === '--version' || argument === '-v') asksFor = asksFor === 'help' ? 'help' : 'version'
    else if (!argument.startsWith('--')) throw usage(`${argument} is not a flag`)
    else {
      const { name, text, consumed } = readFlag(argument, args[at + 1])
      given.set(name, text)
      at += consumed
    }
  }
  return { asksFor, given }
}

/** Understands `--port 1`, `--port=1`, `--level-barrier`, `--level-barrier=false` and `--no-level-barrier`. */
function readFlag(argument: string, next: string | undefined) {
  const equals = argument.indexOf('=')
  const flag = equals === -1 ? argument : argument.slice(0, equals)
  const attached = equals === -1 ? undefined : argument.slice(equals + 1)
  const denied = flag.startsWith('--no-') ? settingByFlag.get(`--${flag.slice(5)}`) : undefined
  if (denied !== undefined && isSwitch(denied) && attached === undefined) {
    return { name: denied, text: 'false', consumed: 0 }
  }
  const name = settingByFlag.get(flag)
  if (name === undefined) throw unknownFlag(flag)
  if (attached !== undefined) return { name, text: attached, consumed: 0 }
  if (isSwitch(name)) {
    const spelledOut = next === 'true' || next === 'false'
    return { name, text: spelledOut ? next : 'true', consumed: spelledOut ? 1 : 0 }
  }
  // A value may begin with a hyphen, but never with two: that is the next flag, and this one's value is missing.
  if (next === undefined || next.startsWith('--')) throw usage(`${flag} needs a value`)
  return { name, text: next, consumed: 1 }
}

const isSwitch = (name: SettingName) => settingOf(name).type === 'boolean'

function unknownFlag(flag: string): SettingsError {
  const meant = didYouMean(flag, [...settingByFlag.keys(), ...otherFlags])
  return usage(`${flag} is not a flag${meant === undefined ? '' : `; did you mean ${meant}?`}`)
}

function usage(fault: string): SettingsError {
  const stop = fault.endsWith('?') ? '' : ';'
  return new SettingsError([`${fault}${stop} --help lists all flags`], 2)
}
