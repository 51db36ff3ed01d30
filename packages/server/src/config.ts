import { instanceIdKeywords, MAX_LEVELS_PER_CALL_BACK, MAX_SCALE_TARGET_SECONDS } from '@baton/protocol'
import Type, { type Static } from 'typebox'
import { LEASE_MAX_MILLIS } from './handoff/rules/policy.ts'

const LONGEST_LEASE_SECONDS = LEASE_MAX_MILLIS / 1000
const DAY_SECONDS = 86_400
/** A host as in the Host header: without wildcard or scheme, IPv6 addresses in brackets. */
const HOST_PATTERN = '^(?:[A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\])(?::\\d{1,5})?$'

/** An address, or a network in CIDR notation. */
const NETWORK_PATTERN = '^[0-9A-Fa-f:.]+(?:/\\d{1,3})?$'

const oneOf = <const Words extends readonly string[]>(words: Words, options: object) =>
  Type.Unsafe<Words[number]>({ type: 'string', enum: [...words], ...options })

const orNone = (options: object) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], minLength: 1, default: null, ...options })

/**
 * All settings. The names of flag and environment variable follow from the property: leaseSeconds is
 * --lease-seconds and BATON_LEASE_SECONDS.
 */
export const configSchema = Type.Object({
  host: Type.String({
    minLength: 1,
    default: '127.0.0.1',
    description: 'where to listen; a host that is not loopback needs tokens, or --allow-anonymous',
  }),
  port: Type.Integer({
    minimum: 0,
    maximum: 65_535,
    default: 7070,
    description: 'where to listen; 0 picks a free port',
  }),
  basePath: Type.String({
    pattern: '^/[A-Za-z0-9._~/-]*$',
    form: 'a path that begins with a slash, of letters, digits and . _ ~ -',
    default: '/',
    description: 'the path under which everything is served, for a service mounted under a prefix',
  }),
  allowedHosts: Type.Array(Type.String({ pattern: HOST_PATTERN }), {
    form: 'names or addresses of hosts, each with or without port: baton.example, [fd00::7]:7070',
    default: [],
    shownDefault: 'loopback names',
    description: 'names that may stand in the Host header, with or without port, separated by commas',
  }),
  allowAnonymous: Type.Boolean({
    default: false,
    description: 'serve a host that is not loopback without asking for tokens',
  }),
  tokensFile: orNone({
    description: 'JSON file of tokens and their roles; without it no token is required',
  }),
  subscriptionsFile: orNone({
    description:
      'JSON file of webhook subscriptions, besides those made over HTTP; read again when it changes',
  }),
  tlsCert: orNone({
    description:
      'certificate in PEM, with its chain: the service then speaks HTTPS; read again when it changes',
  }),
  tlsKey: orNone({ description: 'private key of the certificate in PEM' }),
  trustProxy: Type.Array(Type.String({ pattern: NETWORK_PATTERN }), {
    form: 'addresses or networks: 10.0.0.5, 10.0.0.0/8, fd00::/8',
    default: [],
    shownDefault: 'none',
    description: 'proxies whose X-Forwarded headers are believed: addresses or networks, separated by commas',
  }),
  data: Type.String({ minLength: 1, default: './data', description: 'folder of the embedded store' }),
  databaseUrl: orNone({ description: 'a PostgreSQL database; given, it replaces the embedded store' }),
  peerUrl: orNone({
    pattern: '^https?://[^/?#@\\s]+(?:/[^?#\\s]*)?$',
    form: 'a URL like http://10.0.0.7:7070, with the base path if there is one, and neither user nor query',
    shownDefault: 'from host and port',
    description: 'with PostgreSQL: how other nodes reach this one; needed where it listens on all addresses',
  }),
  peerCa: orNone({
    shownDefault: 'those of the system',
    description: 'with PostgreSQL and TLS: certificates in PEM by which other nodes are known',
  }),
  instanceId: Type.String({
    ...instanceIdKeywords,
    form: `a name of 1 to ${instanceIdKeywords.maxLength} printable characters`,
    shownDefault: 'host name + random',
    description: "this node's name",
  }),
  delivery: oneOf(['at-least-once', 'at-most-once'], {
    default: 'at-least-once',
    description: 'at-most-once settles a partition by handing it out, for workers that only pull',
  }),
  leaseSeconds: Type.Number({
    minimum: 0.001,
    maximum: LONGEST_LEASE_SECONDS,
    default: 300,
    description: 'how long a lease runs',
  }),
  leasePerThousandRecords: Type.Number({
    minimum: 0,
    maximum: LONGEST_LEASE_SECONDS,
    default: 0,
    description: `seconds added to a lease for each thousand records; a lease is at most ${LONGEST_LEASE_SECONDS / 3600} hours`,
  }),
  maxAttempts: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    default: 5,
    description: 'attempts at a partition before it is parked',
  }),
  backoffSeconds: Type.Number({
    minimum: 0,
    maximum: DAY_SECONDS,
    default: 10,
    description: 'wait after a first failed attempt; doubles with each further one',
  }),
  backoffMaxSeconds: Type.Number({
    minimum: 0,
    maximum: DAY_SECONDS,
    default: 600,
    description: 'the longest wait between two attempts',
  }),
  levelBarrier: Type.Boolean({
    default: false,
    description: 'new tasks hand out a level only when all lower ones are done',
  }),
  tableField: Type.String({
    pattern: '^[A-Za-z_$][A-Za-z0-9_$.-]{0,127}$',
    form: 'a field name: a letter, _ or $, then at most 127 letters, digits, or one of _ $ . -',
    default: 'computeTableName',
    description: "the wire's name for the field that holds the compute table",
  }),
  unknownFields: oneOf(['refuse', 'ignore', 'keep'], {
    default: 'refuse',
    description:
      'what to do about fields in a call-back that the contract does not know; kept ones are handed to workers',
  }),
  bodyLimitMb: Type.Number({
    minimum: 0.001,
    maximum: 1024,
    default: 32,
    description: 'largest call-back in MiB',
  }),
  maxConnections: Type.Integer({
    minimum: 16,
    maximum: 1_000_000,
    default: 20_000,
    description: 'connections at once; fewer where the process may open fewer files',
  }),
  maxConnectionsPerAddress: Type.Integer({
    minimum: 1,
    maximum: 1_000_000,
    default: 10_000,
    description: 'connections at once from one address, or from one /64 network of IPv6',
  }),
  maxRequestsPerConnection: Type.Integer({
    minimum: 1,
    maximum: 10_000,
    default: 100,
    description:
      'requests of one connection that are served at once; further ones are served as those are answered',
  }),
  maxWaitingPulls: Type.Integer({
    minimum: 0,
    maximum: 1_000_000,
    default: 20_000,
    description: 'pulls that wait for work at once; further ones are answered without waiting',
  }),
  maxWaitingPullsPerCaller: Type.Integer({
    minimum: 0,
    maximum: 1_000_000,
    default: 10_000,
    description: 'the same for one token, or without tokens for one address',
  }),
  maxReceivedMb: Type.Number({
    minimum: 0.001,
    maximum: 65_536,
    default: 256,
    description: 'bodies in MiB that are received and not yet answered, in all',
  }),
  maxCallBackPartitions: Type.Integer({
    minimum: 1,
    maximum: 10_000_000,
    default: 500_000,
    description: 'descriptors in one call-back',
  }),
  maxCallBackLevels: Type.Integer({
    minimum: 1,
    maximum: 10_000_000,
    default: MAX_LEVELS_PER_CALL_BACK,
    description: 'different levels in one call-back',
  }),
  requestSeconds: Type.Number({
    minimum: 0.1,
    maximum: DAY_SECONDS,
    default: 300,
    description: 'time for a request to arrive, headers and body',
  }),
  answerSeconds: Type.Number({
    minimum: 0.1,
    maximum: DAY_SECONDS,
    default: 60,
    description: 'time in which a client takes an answer, or 64 KiB of it; otherwise it is disconnected',
  }),
  maxUnsentMb: Type.Number({
    minimum: 0.001,
    maximum: 65_536,
    default: 256,
    description: 'answers in MiB that clients have not taken yet, in all',
  }),
  overloadSeconds: Type.Number({
    minimum: 0.001,
    maximum: 3600,
    default: 1,
    description: 'delay of the event loop from which call-backs are refused, and later other requests',
  }),
  maxRequestsPerSecond: Type.Number({
    minimum: 0,
    maximum: 1_000_000,
    default: 0,
    shownDefault: '0 (no bound)',
    description: 'requests a second of one token, or without tokens of one address',
  }),
  retentionDays: Type.Number({
    minimum: 0,
    maximum: 36_500,
    default: 7,
    description: "how long a finished task's partitions are kept; its summary stays",
  }),
  scaleTargetSeconds: Type.Integer({
    minimum: 1,
    maximum: MAX_SCALE_TARGET_SECONDS,
    default: 600,
    description: 'time within which the backlog is to be finished, for /scale and baton_desired_workers',
  }),
  webhookNetworks: Type.Array(Type.String({ pattern: NETWORK_PATTERN }), {
    form: 'addresses or networks: 10.20.0.0/16, 127.0.0.1, fd00::/8',
    default: [],
    shownDefault: 'none',
    description: 'private networks that webhooks may be sent to, separated by commas; public ones always may',
  }),
  webhookBackoffSeconds: Type.Number({
    minimum: 0.001,
    maximum: 3600,
    default: 5,
    description:
      'wait before a webhook that failed is sent again; trebles up to 5760 times this, for 17 attempts',
  }),
  webhookSource: Type.String({
    pattern: '^[!-~]{1,200}$',
    form: 'a URI reference of at most 200 characters, like /baton or https://baton.example',
    default: '/baton',
    description: 'the source of events, which tells installations of this service apart',
  }),
  fastPath: Type.Boolean({
    default: true,
    description:
      "serve plain pulls and settles without Node's HTTP server, which is faster; off, Node's server reads every request",
  }),
  logLevel: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
    default: 'info',
    description: 'what is logged; debug also logs each request',
  }),
})

export type Config = Static<typeof configSchema>
export type SettingName = keyof Config

export const settingNames = Object.keys(configSchema.properties) as SettingName[]

/** The parts of a setting's schema that the settings reader and the help text use. */
export interface Setting {
  readonly type: string | readonly string[]
  readonly description: string
  readonly default?: unknown
  readonly shownDefault?: string
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly form?: string
}

export const settingOf = (name: SettingName) => configSchema.properties[name] as unknown as Setting

const words = (name: SettingName) => name.replaceAll(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)
export const flagOf = (name: SettingName) => `--${words(name)}`
export const variableOf = (name: SettingName) => `BATON_${words(name).replaceAll('-', '_').toUpperCase()}`

/** The base path as a prefix of other paths: empty, or without a trailing slash. */
export const pathPrefixOf = ({ basePath }: Pick<Config, 'basePath'>) => basePath.replace(/\/+$/, '')
