import { instanceIdKeywords, MAX_LEVELS_PER_CALL_BACK, MAX_SCALE_TARGET_SECONDS } from '@baton/protocol'
import Type, { type Static } from 'typebox'
import { MAX_WAITING_PULLS } from './handoff/pulls.ts'
import { DEFAULT_MAX_LANES, DEFAULT_MAX_LEASES } from './handoff/rules/open-work-limits.ts'
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

type Range = readonly [least: number, most: number]

const rangeOf = ([minimum, maximum]: Range, usual: number, description: string, more: object) => ({
  minimum,
  maximum,
  default: usual,
  description,
  ...more,
})

const integer = (range: Range, usual: number, description: string, more = {}) =>
  Type.Integer(rangeOf(range, usual, description, more))

const number = (range: Range, usual: number, description: string, more = {}) =>
  Type.Number(rangeOf(range, usual, description, more))

/** All settings. leaseSeconds is the flag --lease-seconds and the variable BATON_LEASE_SECONDS. */
export const configSchema = Type.Object({
  host: Type.String({
    minLength: 1,
    default: '127.0.0.1',
    description:
      'host name or address to listen on; a host that is not loopback requires tokens or --allow-anonymous',
  }),
  port: integer([0, 65_535], 7070, 'port to listen on; 0 selects a free port'),
  basePath: Type.String({
    pattern: '^/[A-Za-z0-9._~/-]*$',
    form: 'a path that begins with a slash, of letters, digits and . _ ~ -',
    default: '/',
    description: 'base path of all routes, for a service behind a path prefix',
  }),
  allowedHosts: Type.Array(Type.String({ pattern: HOST_PATTERN }), {
    form: 'host names or addresses, each with or without a port: baton.example, [fd00::7]:7070',
    default: [],
    shownDefault: 'loopback names',
    description: 'allowed values of the Host header, with or without a port, separated by commas',
  }),
  allowAnonymous: Type.Boolean({
    default: false,
    description: 'listen on a host that is not loopback without requiring tokens',
  }),
  tokensFile: orNone({
    description: 'JSON file of tokens and their roles; without it no token is required',
  }),
  subscriptionsFile: orNone({
    description:
      'JSON file of webhook subscriptions, in addition to those created over HTTP; reloaded when it changes',
  }),
  tlsCert: orNone({
    description: 'PEM file with the certificate and its chain; enables HTTPS; reloaded when it changes',
  }),
  tlsKey: orNone({ description: 'PEM file with the private key of the certificate' }),
  trustProxy: Type.Array(Type.String({ pattern: NETWORK_PATTERN }), {
    form: 'addresses or networks: 10.0.0.5, 10.0.0.0/8, fd00::/8',
    default: [],
    shownDefault: 'none',
    description: 'proxies whose X-Forwarded headers are trusted: addresses or networks, separated by commas',
  }),
  authProxy: Type.Array(Type.String({ pattern: NETWORK_PATTERN }), {
    form: 'addresses or networks: 10.0.0.5, 10.0.0.0/8, fd00::/8',
    default: [],
    shownDefault: 'none',
    description:
      'proxies at which users sign in: their X-Forwarded-User and X-Forwarded-Groups are trusted; the tokens file has the roles of groups',
  }),
  data: Type.String({ minLength: 1, default: './data', description: 'folder of the embedded store' }),
  databaseUrl: orNone({
    description:
      'URL of a PostgreSQL database, which replaces the embedded store; the flag --data overrides the variable, BATON_DATA does not',
  }),
  peerUrl: orNone({
    pattern: '^https?://[^/?#@\\s]+(?:/[^?#\\s]*)?$',
    form: 'a URL such as http://10.0.0.7:7070, including the base path if there is one, without user and query',
    shownDefault: 'from host and port',
    description:
      'with PostgreSQL: the URL at which other nodes reach this node; required if it listens on all addresses',
  }),
  advertiseUrl: orNone({
    pattern: '^https?://[^/?#@\\s]+(?:/[^?#\\s]*)?$',
    form: 'a URL such as https://north.example:7070, including the base path if there is one, without user and query',
    description: 'with PostgreSQL: the URL at which clients may reach this node directly while it leads',
  }),
  logUrl: orNone({
    pattern: '^https?://[^\\s]+$',
    form: 'a URL with {holder}, {task}, {partition} or {attempt} in it, such as https://logs.example/?host={holder}',
    description:
      'where the page finds the log of an attempt; {holder}, {task}, {partition} and {attempt} are filled in',
  }),
  peerCa: orNone({
    shownDefault: 'system certificates',
    description: 'with PostgreSQL and TLS: PEM file of the CA certificates of other nodes',
  }),
  instanceId: Type.String({
    ...instanceIdKeywords,
    form: `a name of 1 to ${instanceIdKeywords.maxLength} printable characters`,
    shownDefault: 'host name + random',
    description: 'the name of this node',
  }),
  delivery: oneOf(['at-least-once', 'at-most-once'], {
    default: 'at-least-once',
    description: 'at-most-once settles a partition when it is handed out, for workers that only pull',
  }),
  leaseSeconds: number([0.001, LONGEST_LEASE_SECONDS], 300, 'length of a lease'),
  leasePerThousandRecords: number(
    [0, LONGEST_LEASE_SECONDS],
    0,
    `seconds added to a lease per thousand records; the maximum lease is ${LONGEST_LEASE_SECONDS / 3600} hours`,
  ),
  maxAttempts: integer([1, 1_000_000], 5, 'number of attempts before a partition is parked'),
  backoffSeconds: number(
    [0, DAY_SECONDS],
    10,
    'back-off after the first failed attempt; doubles with each further failure',
  ),
  backoffMaxSeconds: number([0, DAY_SECONDS], 600, 'maximum back-off'),
  levelBarrier: Type.Boolean({
    default: false,
    description:
      'new tasks hand out a level only when all lower levels are done; not with at-most-once delivery',
  }),
  tableField: Type.String({
    pattern: '^[A-Za-z_$][A-Za-z0-9_$.-]{0,127}$',
    form: 'a field name: a letter, _ or $, then at most 127 letters, digits, or one of _ $ . -',
    default: 'computeTableName',
    description: 'JSON name of the field that contains the compute table',
  }),
  unknownFields: oneOf(['refuse', 'ignore', 'keep'], {
    default: 'refuse',
    description: 'how to treat additional fields of descriptors; with keep, workers receive them',
  }),
  bodyLimitMb: number([0.001, 1024], 16, 'maximum size of a call-back in MiB'),
  maxConnections: integer(
    [16, 1_000_000],
    20_000,
    'maximum number of connections; less if the limit on open files is lower',
  ),
  maxConnectionsPerAddress: integer(
    [1, 1_000_000],
    10_000,
    'maximum number of connections from one address, or from one /64 network of IPv6',
  ),
  maxRequestsPerConnection: integer(
    [1, 10_000],
    100,
    'maximum number of concurrent requests on one connection; further requests wait',
  ),
  maxWaitingPulls: integer(
    [0, 1_000_000],
    MAX_WAITING_PULLS,
    'maximum number of waiting pulls; further pulls are answered without waiting',
  ),
  maxWaitingPullsPerCaller: integer(
    [0, 1_000_000],
    10_000,
    'the same for one token or, without tokens, for one address',
  ),
  maxReceivedMb: number(
    [0.001, 65_536],
    256,
    'maximum total size in MiB of request bodies that are received and not answered yet',
  ),
  maxCallBackPartitions: integer([1, 10_000_000], 100_000, 'maximum number of descriptors in one call-back'),
  maxCallBackLevels: integer(
    [1, 10_000_000],
    MAX_LEVELS_PER_CALL_BACK,
    'maximum number of different levels in one call-back',
  ),
  maxLanes: integer(
    [1, 100_000_000],
    DEFAULT_MAX_LANES,
    'maximum number of lanes with unfinished work; each further table of a lane counts as a tenth. Call-backs and retries beyond it are refused',
  ),
  maxLeases: integer(
    [1, 100_000_000],
    DEFAULT_MAX_LEASES,
    'maximum number of leases; pulls beyond it are empty and say why',
  ),
  requestSeconds: number(
    [0.1, DAY_SECONDS],
    300,
    'time limit for receiving the headers and the body of a request',
  ),
  answerSeconds: number(
    [0.1, DAY_SECONDS],
    60,
    'time limit for a client to receive a response, or 64 KiB of it; a slower client is disconnected',
  ),
  maxUnsentMb: number(
    [0.001, 65_536],
    256,
    'maximum total size in MiB of responses that clients have not received yet',
  ),
  overloadSeconds: number(
    [0.001, 3600],
    1,
    'event loop delay above which call-backs are refused; other requests are refused at longer delays',
  ),
  maxRequestsPerSecond: number(
    [0, 1_000_000],
    0,
    'maximum number of requests per second of one token or, without tokens, of one address',
    { shownDefault: '0 (no bound)' },
  ),
  retentionDays: number(
    [0, 36_500],
    7,
    'how long the partitions of a finished task are kept; its summary is kept forever',
  ),
  auditDays: number([0, 36_500], 90, 'how long the audit is kept: who changed what'),
  scaleTargetSeconds: integer(
    [1, MAX_SCALE_TARGET_SECONDS],
    600,
    'time within which the backlog should be finished, for /scale and baton_desired_workers',
  ),
  webhookNetworks: Type.Array(Type.String({ pattern: NETWORK_PATTERN }), {
    form: 'addresses or networks: 10.20.0.0/16, 127.0.0.1, fd00::/8',
    default: [],
    shownDefault: 'none',
    description:
      'private networks that webhooks can be sent to, separated by commas; public networks are always allowed',
  }),
  webhookBackoffSeconds: number(
    [0.001, 3600],
    5,
    'time before a failed webhook is sent again; triples with each attempt up to 5760 times this, for 17 attempts',
  ),
  webhookSource: Type.String({
    pattern: '^[!-~]{1,200}$',
    form: 'a URI reference of at most 200 characters, such as /baton or https://baton.example',
    default: '/baton',
    description: 'source attribute of events, which distinguishes installations of this service',
  }),
  fastPath: Type.Boolean({
    default: true,
    description:
      "serve plain pulls and settles without Node's HTTP server, which is faster; if false, Node's HTTP server serves every request",
  }),
  logLevel: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
    default: 'info',
    description: 'log level; debug also logs each request',
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
