import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { Cluster } from './cluster/open-cluster.ts'
import { type Config, pathPrefixOf } from './config.ts'
import type { WallClock } from './handoff/clock.ts'
import { HandOff } from './handoff/hand-off.ts'
import type { Log } from './handoff/log.ts'
import { OpenWorkMeter } from './handoff/open-work-meter.ts'
import type { Policy } from './handoff/rules/policy.ts'
import type { Store } from './handoff/store.ts'
import { HostRule } from './http/admission/browser-defence.ts'
import { noTokens } from './http/admission/tokens.ts'
import { LiveTokens } from './http/admission/tokens-file.ts'
import type { ClientLimits } from './http/limits/limits.ts'
import { keyOwners } from './http/requests/preferences.ts'
import { untraced } from './http/route-context.ts'
import { buildHttp, type Timeouts } from './http/server.ts'
import { TlsFiles } from './http/tls.ts'
import { openEmbeddedStore, openSharedStore, type StoreOptions } from './open-store.ts'
import { SettingsError } from './settings-files.ts'
import { openTracing } from './tracing.ts'
import { version } from './version.ts'
import { AddressRule } from './webhooks/address-rule.ts'
import { Deliverer } from './webhooks/deliverer.ts'
import { type LiveSubscriptions, openSubscriptionsFile } from './webhooks/subscriptions-file.ts'
import { RetrySchedule } from './webhooks/target.ts'

export type { Config } from './config.ts'

export interface AppOptions {
  readonly log: Log
  /** For tests that control the time. */
  readonly clock?: WallClock
  readonly timeouts?: Partial<Timeouts>
}

/** Where the data is stored: a folder, or the host, port and name of a database. */
type StoredIn = { readonly data: string } | { readonly database: string }

/** The complete service, not listening yet. */
export interface App {
  readonly http: FastifyInstance
  readonly handOff: HandOff
  readonly store: Store
  readonly storedIn: StoredIn
  /** Null for plain HTTP. */
  readonly tls: TlsFiles | null
  /** Joins the other nodes, which reach this one, listening, at `url`. Before that it cannot hand off. */
  join(url: string): Promise<void>
  /** Finishes running requests, then closes the store. */
  close(): Promise<void>
}

export async function openApp(config: Config, options: AppOptions): Promise<App> {
  const { log, clock, timeouts } = options
  const tracing = await openTracing()
  const files = openFiles(config, log)
  const { tokens, tls, rule, subscriptions } = files
  const policy = policyOf(config)
  const openWork = new OpenWorkMeter({ lanes: config.maxLanes, leases: config.maxLeases }, log)
  const opened = openStore(config, log, { policy, node: config.instanceId, clock, tracing, openWork })
  opened.catch(() => closeFiles(files))
  const { store, storedIn, cluster } = await opened
  try {
    const deliverer = new Deliverer({
      store,
      openPoster: async () => new (await import('./webhooks/posting.ts')).Poster(rule),
      retrySchedule: new RetrySchedule(config.webhookBackoffSeconds * 1000),
      source: config.webhookSource,
      userAgent: `Baton/${version}`,
      log,
      file: subscriptions,
    })
    subscriptions?.onReload(() => deliverer.pollNow())
    const handOff = new HandOff({
      store,
      policy,
      retentionMillis: config.retentionDays * 86_400_000,
      auditMillis: config.auditDays * 86_400_000,
      node: { instanceId: config.instanceId, version, load: eventLoopLoad() },
      maxWaitingPulls: config.maxWaitingPulls,
      openWork,
      log,
      deliverer,
      tracing,
      ...(clock === undefined ? {} : { clock, stopwatch: clock }),
    })
    const http = await buildHttp({
      context: {
        handOff,
        log,
        tableField: config.tableField,
        unknownFields: config.unknownFields,
        logUrl: config.logUrl,
        callBackLimitBytes: Math.floor(config.bodyLimitMb * 2 ** 20),
        callBackLevels: config.maxCallBackLevels,
        keyOwner: keyOwners(tokens),
        tokens: tokens ?? noTokens,
        webhooks: { rule, deliverer, source: config.webhookSource, file: subscriptions },
        scaleTargetSeconds: config.scaleTargetSeconds,
        tracing: tracing ?? untraced,
      },
      admission: { hosts: new HostRule(config.allowedHosts), tokens },
      limits: limitsOf(config),
      requestLog: config.logLevel === 'debug' || config.logLevel === 'trace' ? log : null,
      isFastPathOn: config.fastPath,
      basePath: pathPrefixOf(config),
      tls,
      trustedProxies: config.trustProxy,
      authProxies: config.authProxy,
      cluster,
      instanceId: config.instanceId,
      advertiseUrl: config.advertiseUrl?.replace(/\/+$/, '') ?? null,
      ...(timeouts === undefined ? {} : { timeouts }),
    })
    http.addHook('onClose', async () => closeFiles(files))
    await http.ready()
    if (cluster === null) await handOff.start()
    return {
      http,
      handOff,
      store,
      storedIn,
      tls,
      async join(url) {
        if (cluster === null) return
        await cluster.join(url)
        await handOff.start()
      },
      close: () => http.close(),
    }
  } catch (error) {
    closeFiles(files)
    await store.close()
    throw error
  }
}

interface WatchedFiles {
  readonly tokens: LiveTokens | null
  readonly tls: TlsFiles | null
  readonly subscriptions: LiveSubscriptions | null
  /** The addresses that the receivers of subscriptions may have. */
  readonly rule: AddressRule
}

function openFiles(config: Config, log: Log): WatchedFiles {
  const { tokensFile, subscriptionsFile, tlsCert, tlsKey, webhookNetworks } = config
  const rule = new AddressRule(webhookNetworks)
  const tokens = tokensFile === null ? null : new LiveTokens(tokensFile, log)
  let tls: TlsFiles | null = null
  try {
    if (tlsCert !== null && tlsKey !== null) tls = new TlsFiles({ cert: tlsCert, key: tlsKey }, log)
    const subscriptions =
      subscriptionsFile === null
        ? null
        : openSubscriptionsFile(subscriptionsFile, { rule, env: process.env, log })
    return { tokens, tls, subscriptions, rule }
  } catch (error) {
    tokens?.close()
    tls?.close()
    throw error
  }
}

function closeFiles({ tokens, tls, subscriptions }: WatchedFiles): void {
  tokens?.close()
  tls?.close()
  subscriptions?.close()
}

interface OpenedStore {
  readonly store: Store
  readonly storedIn: StoredIn
  readonly cluster: Cluster | null
}

async function openStore(config: Config, log: Log, options: StoreOptions): Promise<OpenedStore> {
  const { data, databaseUrl: url } = config
  if (url === null) {
    const warn = (text: string) => log.warn({}, text)
    const store = await openEmbeddedStore({ folder: data, warn, ...options })
    return { store, storedIn: { data: resolve(data) }, cluster: null }
  }
  const peerCa = config.peerCa === null ? null : readPem(config.peerCa)
  const { cluster, database } = await openSharedStore({ url, log, peerCa, ...options })
  return { store: cluster.store, storedIn: { database }, cluster }
}

/** Views write heartbeats, too, and what happens within milliseconds is no load. */
const SHORTEST_LOAD_MILLIS = 2000

/** Returns the share of the last seconds in which the event loop was busy, in per cent. */
function eventLoopLoad(): () => number {
  let before = performance.eventLoopUtilization()
  let measuredAt = performance.now()
  let load = 0
  return () => {
    if (performance.now() - measuredAt < SHORTEST_LOAD_MILLIS) return load
    measuredAt = performance.now()
    const now = performance.eventLoopUtilization()
    load = Math.round(performance.eventLoopUtilization(now, before).utilization * 100)
    before = now
    return load
  }
}

function limitsOf(config: Config): ClientLimits {
  const bytes = (mebibytes: number) => Math.floor(mebibytes * 2 ** 20)
  return {
    connections: config.maxConnections,
    connectionsPerAddress: config.maxConnectionsPerAddress,
    requestsPerConnection: config.maxRequestsPerConnection,
    waitingPulls: config.maxWaitingPulls,
    waitingPullsPerCaller: config.maxWaitingPullsPerCaller,
    receivedBytes: bytes(config.maxReceivedMb),
    unsentBytes: bytes(config.maxUnsentMb),
    callBackPartitions: config.maxCallBackPartitions,
    callBackLevels: config.maxCallBackLevels,
    requestMillis: config.requestSeconds * 1000,
    answerMillis: config.answerSeconds * 1000,
    overloadMillis: config.overloadSeconds * 1000,
    requestsPerSecond: config.maxRequestsPerSecond,
  }
}

function readPem(path: string): Buffer {
  const fault = (why: string) =>
    new SettingsError([`the certificate file of the peer nodes, ${path}, ${why}`])
  let pem: Buffer
  try {
    pem = readFileSync(path)
  } catch (error) {
    throw fault(`cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw fault('contains no PEM certificate')
  return pem
}

function policyOf(config: Config): Policy {
  const millis = (seconds: number) => Math.round(seconds * 1000)
  return {
    delivery: config.delivery,
    leaseMillis: millis(config.leaseSeconds),
    leaseMillisPerThousandRecords: millis(config.leasePerThousandRecords),
    maxAttempts: config.maxAttempts,
    backoffMillis: millis(config.backoffSeconds),
    backoffMaxMillis: millis(config.backoffMaxSeconds),
    levelBarrier: config.levelBarrier,
  }
}
