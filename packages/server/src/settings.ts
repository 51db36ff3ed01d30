import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { didYouMean } from '@baton/protocol'
import { Check } from 'typebox/schema'
import {
  type Config,
  configSchema,
  flagOf,
  type Setting,
  type SettingName,
  settingNames,
  settingOf,
  variableOf,
} from './config.ts'
import { contradictions } from './contradictions.ts'
import { isLoopback } from './loopback.ts'
import { SettingsError } from './settings-error.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface Settings {
  readonly config: Config
  /** Worth telling, no reason to stop. */
  readonly warnings: readonly string[]
}

/** Flag beats environment beats default. Everything that is wrong is reported at once. */
export function readSettings(given: ReadonlyMap<SettingName, string>, environment: Environment): Settings {
  const faults: string[] = []
  const values: Record<string, unknown> = {}
  for (const name of settingNames) {
    const source = sourceOf(name, given, environment)
    if (source === undefined) {
      values[name] = name === 'instanceId' ? madeUpInstanceId() : settingOf(name).default
      continue
    }
    const value = readValue(settingOf(name), source.text)
    if (Check(configSchema.properties[name], value)) values[name] = value
    else
      faults.push(`${source.label} must be ${expected(settingOf(name))}, got ${JSON.stringify(source.text)}`)
  }
  faults.push(...contradictions(values as Partial<Config>))
  if (faults.length > 0) throw new SettingsError(faults)
  const config = values as Config
  return { config, warnings: [...misspeltVariables(environment), ...oddities(config)] }
}

function sourceOf(name: SettingName, given: ReadonlyMap<SettingName, string>, environment: Environment) {
  const flag = given.get(name)
  if (flag !== undefined) return { label: flagOf(name), text: flag }
  const variable = environment[variableOf(name)]
  // An empty variable is how compose files and shells spell "not set".
  if (variable === undefined || variable === '') return undefined
  return { label: variableOf(name), text: variable }
}

const booleans = new Map([
  ['true', true],
  ['1', true],
  ['yes', true],
  ['on', true],
  ['false', false],
  ['0', false],
  ['no', false],
  ['off', false],
])

/** Undefined where the text has no reading of that type; the schema then refuses it. */
function readValue({ type }: Setting, text: string): unknown {
  if (type === 'integer' || type === 'number') return /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : undefined
  if (type === 'boolean') return booleans.get(text.toLowerCase())
  if (type !== 'array') return text
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

function expected({ type, form, enum: choices, minimum, maximum }: Setting): string {
  if (form !== undefined) return form
  if (choices !== undefined) return `one of ${choices.join(', ')}`
  if (type === 'boolean') return 'true or false'
  if (type === 'integer') return `an integer from ${minimum} to ${maximum}`
  if (type === 'number') return `a number from ${minimum} to ${maximum}`
  return 'a text that is not empty'
}

/** Tells nodes that share a host apart, and one start from the next. */
function madeUpInstanceId(): string {
  return `${hostname().slice(0, 200) || 'baton'}-${randomBytes(4).toString('hex')}`
}

/** Allowed, but probably not what is wanted. */
function oddities({ host, tokensFile, allowedHosts }: Config): string[] {
  if (isLoopback(host) || tokensFile !== null || allowedHosts.length > 0) return []
  return [
    'requests from other machines will be refused for their Host header: ' +
      'list the names under which this node is reached with --allowed-hosts, or use --tokens-file',
  ]
}

/** Variables of other programs of ours may begin alike, so only what looks like a slip is mentioned. */
function misspeltVariables(environment: Environment): string[] {
  const known = settingNames.map(variableOf)
  return Object.keys(environment)
    .filter((name) => name.startsWith('BATON_') && !known.includes(name))
    .flatMap((name) => {
      const meant = didYouMean(name, known)
      return meant === undefined ? [] : [`${name} is not a setting and is ignored; did you mean ${meant}?`]
    })
}
