import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { isDeepStrictEqual } from 'node:util'
import { didYouMean, partitionRowSchema, pulledPartitionSchema } from '@baton/protocol'
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
import { isLoopback, isWildcard } from './http/admission/browser-defence.ts'
import { parseNetwork } from './networks.ts'
import { SettingsError } from './settings-files.ts'

/** A check for settings that are each valid but do not fit together. */
interface Contradiction {
  readonly between: readonly SettingName[]
  found(config: Config): string | undefined
}

const takenFields = new Set([
  ...Object.keys(partitionRowSchema().properties),
  ...Object.keys(pulledPartitionSchema().properties),
])
takenFields.delete('computeTableName')

const networks = (name: 'trustProxy' | 'authProxy' | 'webhookNetworks'): Contradiction => ({
  between: [name],
  found: (config) => {
    const wrong = config[name].filter((network) => parseNetwork(network) === undefined)
    return wrong.length === 0
      ? undefined
      : `${flagOf(name)} accepts addresses and networks such as 10.0.0.5 or 10.0.0.0/8, not ${wrong.join(', ')}`
  },
})

const rules: readonly Contradiction[] = [
  networks('trustProxy'),
  networks('authProxy'),
  networks('webhookNetworks'),
  {
    between: ['host', 'tokensFile', 'allowAnonymous'],
    found: ({ host, tokensFile, allowAnonymous }) =>
      isLoopback(host) || tokensFile !== null || allowAnonymous
        ? undefined
        : `anyone who can reach ${host} could pull and settle: set a tokens file with --tokens-file, ` +
          'or set --allow-anonymous in a trusted network',
  },
  {
    between: ['host', 'databaseUrl', 'peerUrl'],
    found: ({ host, databaseUrl, peerUrl }) =>
      databaseUrl !== null && peerUrl === null && isWildcard(host)
        ? `other nodes cannot reach this node at ${host}: set its address with --peer-url, ` +
          'such as http://10.0.0.7:7070, or listen on one address with --host'
        : undefined,
  },
  {
    between: ['tlsCert', 'tlsKey'],
    found: ({ tlsCert, tlsKey }) => {
      if ((tlsCert === null) === (tlsKey === null)) return undefined
      return `a certificate and its key must be set together: also set ${tlsCert === null ? '--tls-cert' : '--tls-key'}`
    },
  },
  {
    between: ['tlsCert', 'peerUrl'],
    found: ({ tlsCert, peerUrl }) =>
      tlsCert !== null && peerUrl?.startsWith('http:')
        ? 'with --tls-cert this node speaks HTTPS only: --peer-url must begin with https://'
        : undefined,
  },
  {
    between: ['authProxy', 'tokensFile'],
    found: ({ authProxy, tokensFile }) =>
      authProxy.length > 0 && tokensFile === null
        ? '--auth-proxy requires --tokens-file, which has the roles of the groups of users'
        : undefined,
  },
  {
    between: ['delivery', 'levelBarrier'],
    found: ({ delivery, levelBarrier }) =>
      delivery === 'at-most-once' && levelBarrier
        ? 'a level barrier waits until partitions are done, which is unknown with --delivery at-most-once: ' +
          'use one of --level-barrier and --delivery at-most-once'
        : undefined,
  },
  {
    between: ['backoffSeconds', 'backoffMaxSeconds'],
    found: ({ backoffSeconds, backoffMaxSeconds }) =>
      backoffMaxSeconds < backoffSeconds
        ? `--backoff-max-seconds (${backoffMaxSeconds}) is less than --backoff-seconds ` +
          `(${backoffSeconds}): raise the first or lower the second`
        : undefined,
  },
  {
    between: ['bodyLimitMb', 'maxReceivedMb'],
    found: ({ bodyLimitMb, maxReceivedMb }) =>
      maxReceivedMb < bodyLimitMb
        ? `--max-received-mb (${maxReceivedMb}) is less than --body-limit-mb (${bodyLimitMb}), ` +
          'so the largest call-back could not be received: raise the first or lower the second'
        : undefined,
  },
  {
    between: ['tableField'],
    found: ({ tableField }) => {
      if (takenFields.has(tableField))
        return `--table-field cannot be ${tableField}: another field has that name`
      return tableField === '__proto__'
        ? '--table-field cannot be __proto__: JavaScript reserves this name'
        : undefined
    },
  },
]

/** `config` may lack settings that were invalid. Checks that need them are skipped. */
function contradictions(config: Partial<Config>): string[] {
  return rules
    .filter(({ between }) => between.every((name) => config[name] !== undefined))
    .flatMap(({ found }) => found(config as Config) ?? [])
}

type Environment = Readonly<Record<string, string | undefined>>

interface Settings {
  readonly config: Config
  /** Faults that are reported but do not prevent the start. */
  readonly warnings: readonly string[]
}

/** A flag overrides the environment variable. All faults are reported at once. */
export function readSettings(given: ReadonlyMap<SettingName, string>, environment: Environment): Settings {
  const faults: string[] = []
  const values: Record<string, unknown> = {}
  for (const name of settingNames) {
    const source = sourceOf(name, given, environment)
    if (source === undefined) {
      values[name] = name === 'instanceId' ? randomInstanceId() : settingOf(name).default
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
  // A flag beats a variable, also where both name the store: --data replaces BATON_DATABASE_URL.
  if (name === 'databaseUrl' && given.has('data')) return undefined
  const variable = environment[variableOf(name)]
  // In compose files and shells, an empty variable means "not set".
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

/** Undefined if the text is not a value of that type; the schema then refuses it. */
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
  return 'a non-empty text'
}

/** Differs between nodes on the same host, and with each start. */
function randomInstanceId(): string {
  return `${hostname().slice(0, 200) || 'baton'}-${randomBytes(4).toString('hex')}`
}

/** The settings that differ from their default, for the log: without the database URL, which has a password. */
export function changedSettings(config: Config): Partial<Config> {
  const changed = settingNames.filter(
    (name) => name !== 'databaseUrl' && !isDeepStrictEqual(config[name], settingOf(name).default),
  )
  return Object.fromEntries(changed.map((name) => [name, config[name]]))
}

function oddities({ host, tokensFile, allowedHosts }: Config): string[] {
  if (isLoopback(host) || tokensFile !== null || allowedHosts.length > 0) return []
  return [
    'requests from other machines will be refused because of their Host header: ' +
      'list the host names of this node with --allowed-hosts, or use --tokens-file',
  ]
}

/** Other programs may use variables with the same prefix, so only probable misspellings are reported. */
function misspeltVariables(environment: Environment): string[] {
  const known = settingNames.map(variableOf)
  return Object.keys(environment)
    .filter((name) => name.startsWith('BATON_') && !known.includes(name))
    .flatMap((name) => {
      const meant = didYouMean(name, known)
      return meant === undefined ? [] : [`${name} is not a setting and is ignored; did you mean ${meant}?`]
    })
}
