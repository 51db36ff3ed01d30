import pg from 'pg'
import { StoreRefused, storeClosed } from '../../../handoff/store.ts'
import { CannotConnect, type FaultyHost, faultOf, IsStandby } from './connect-faults.ts'
import { Connection, type ConnectionOptions, type Row, type Statement } from './connection.ts'
import { asRefused, ConnectionLost, isSessionOver } from './errors.ts'

/** Several hosts with commas between them, as in libpq. The driver knows one host only. */
interface DatabaseUrl {
  /** The hosts for messages, without user and password. */
  readonly where: string
  readonly hosts: readonly string[]
}

/**
 * The driver's values. It treats `prefer`, `require` and `verify-ca` as verify-full, but warns on stderr, in
 * plain text between the log's JSON lines, that its next version will not. So they are replaced by
 * verify-full here.
 */
const SSL_MODES = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full']
const MEAN_VERIFY_FULL = ['prefer', 'require', 'verify-ca']

const SCHEME = /^postgres(?:ql)?:\/\//
/** One @ after user and password, and no #: so an unencoded password is never shown as a host. */
const FORM = /^(postgres(?:ql)?):\/\/(?:([^@/?#]*)@)?([^@/?#]*)(\/[^@?#]*)?(?:\?([^@#]*))?$/
/** A name, an address, the encoded path of a socket directory, or nothing. */
const HOST = /^(?:[^\s:[\]]*|\[[^\s[\]]+\])(?::\d*)?$/

/** Quotes no part of the URL, since any part may belong to a password. */
const UNREADABLE =
  'the database URL is invalid; its form is postgres://USER:PASSWORD@HOST:PORT/DATABASE, with several hosts separated by commas. In user and password, percent-encode @ as %40, / as %2F, ? as %3F, # as %23, : as %3A and % as %25; elsewhere, percent-encode @'

export function parseDatabaseUrl(url: string): DatabaseUrl {
  if (!SCHEME.test(url))
    throw new StoreRefused('the database URL must begin with postgres:// or postgresql://')
  const match = FORM.exec(url)
  if (match === null) throw new StoreRefused(UNREADABLE)
  const [, scheme, user, authority = '', database = '', query = ''] = match
  if (!isEncoded(user ?? '') || !areHosts(authority)) throw new StoreRefused(UNREADABLE)
  const parameters = new URLSearchParams(query)
  // The connector itself finds the host that takes writes.
  parameters.delete('target_session_attrs')
  stateSslMode(parameters)
  const rest = parameters.toString()
  const urlFor = (host: string) =>
    `${scheme}://${user === undefined ? '' : `${user}@`}${host}${database}${rest === '' ? '' : `?${rest}`}`
  return {
    where: authority === '' ? (parameters.get('host') ?? 'the local socket') : authority,
    hosts: authority.split(',').map((host) => urlFor(host.trim())),
  }
}

function stateSslMode(parameters: URLSearchParams): void {
  const mode = parameters.getAll('sslmode').at(-1)
  if (mode === undefined) return
  if (!SSL_MODES.includes(mode)) {
    throw new StoreRefused(
      `sslmode=${mode} in the database URL is unknown: use sslmode=verify-full, sslmode=no-verify or sslmode=disable; ${MEAN_VERIFY_FULL.join(', ')} mean verify-full`,
    )
  }
  const isLibpqs = parameters.get('uselibpqcompat') === 'true'
  if (isLibpqs && mode === 'verify-ca' && !parameters.has('sslrootcert'))
    throw new StoreRefused('sslmode=verify-ca in the database URL requires the CA file: sslrootcert=FILE')
  if (!isLibpqs && MEAN_VERIFY_FULL.includes(mode)) parameters.set('sslmode', 'verify-full')
}

const areHosts = (hosts: string): boolean => hosts.split(',').every((host) => HOST.test(host.trim()))

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** For messages. It asks the driver, because what the URL leaves out comes from the environment. */
export function describeServer(url: string): string {
  return parseDatabaseUrl(url)
    .hosts.map((connectionString) => {
      const { host, port, database } = new pg.Client({ connectionString })
      return `${host}:${port}/${database}`
    })
    .join(', ')
}

/** A migration may copy all rows, and an export may scan a large table before it gets the first one. */
const LONG_ANSWER_MILLIS = 3_600_000

/** Runs long work on a connection of its own, for an operator who starts a program. */
export async function withConnection<Result>(
  url: string,
  work: (connection: Connection) => Promise<Result>,
  connectMillis = 10_000,
): Promise<Result> {
  const { hosts, where } = parseDatabaseUrl(url)
  try {
    const connection = await new Connector(hosts).connect({ connectMillis, answerMillis: LONG_ANSWER_MILLIS })
    return await work(connection).finally(() => connection.close())
  } catch (error) {
    throw error instanceof CannotConnect ? error.asRefused() : asRefused(error, where)
  }
}

/** Opens connections to the first host that takes writes, starting with the host that did last time. */
export class Connector {
  readonly #hosts: readonly string[]
  #preferred = 0

  constructor(hosts: readonly string[]) {
    this.#hosts = hosts
  }

  /** Always rejects with CannotConnect. */
  async connect(options: ConnectionOptions): Promise<Connection> {
    const faults: FaultyHost[] = []
    for (let step = 0; step < this.#hosts.length; step += 1) {
      const position = (this.#preferred + step) % this.#hosts.length
      const host = this.#hosts[position] ?? ''
      try {
        const connection = await open(host, options)
        this.#preferred = position
        return connection
      } catch (error) {
        faults.push({ ...faultOf(error), where: parseDatabaseUrl(host).where })
      }
    }
    throw new CannotConnect(faults)
  }
}

async function open(url: string, options: ConnectionOptions): Promise<Connection> {
  const connection = await Connection.open(url, options)
  const [answer] = await connection
    .run({ text: 'SELECT pg_is_in_recovery() AS standby' })
    .catch((error: unknown) => {
      connection.destroy()
      throw error
    })
  if (answer?.['standby'] !== true) return connection
  await connection.close()
  throw new IsStandby()
}

/** One connection for one kind of work. It is opened on first use, and again after it was lost. */
export class Channel {
  readonly #connector: Connector
  readonly #options: ConnectionOptions
  #opening: Promise<Connection> | undefined
  #open: Connection | undefined
  #isClosed = false
  #underWay = 0

  constructor(connector: Connector, options: ConnectionOptions) {
    this.#connector = connector
    this.#options = options
  }

  get underWay(): number {
    return this.#underWay
  }

  /** For work that must not be sent twice. A session that PostgreSQL has ended is not used again. */
  async use<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    this.#underWay += 1
    try {
      const connection = await this.#connection()
      try {
        return await work(connection)
      } catch (error) {
        if (isSessionOver(error)) connection.destroy()
        throw error
      }
    } finally {
      this.#underWay -= 1
    }
  }

  /** For work that may be sent twice. It is sent again if an idle connection turns out to be dead. */
  async useWithRetry<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
    const rested = this.#open
    try {
      return await this.use(work)
    } catch (error) {
      if (rested === undefined || !(error instanceof ConnectionLost)) throw error
      return this.use(work)
    }
  }

  run(statement: Statement): Promise<Row[]> {
    return this.use((connection) => connection.run(statement))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#opening?.catch(() => {})
    await this.#open?.close()
  }

  async #connection(): Promise<Connection> {
    if (this.#isClosed) throw storeClosed()
    if (this.#open !== undefined && !this.#open.isLost) return this.#open
    this.#opening ??= this.#connector.connect(this.#options).finally(() => {
      this.#opening = undefined
    })
    const connection = await this.#opening
    this.#open = connection
    return connection
  }
}

/** The number of connections for everything but appends and flushes. */
const GENERAL_CHANNELS = 3

export interface Timeouts {
  readonly connectMillis: number
  /** Short, because all requests wait for a running append: a silent connection is given up early. */
  readonly appendMillis: number
  readonly answerMillis: number
}

/** The connections of a node: a small fixed number, each opened on first use. */
export class Channels {
  readonly append: Channel
  readonly flush: Channel
  readonly #general: readonly Channel[]

  constructor(connector: Connector, { connectMillis, appendMillis, answerMillis }: Timeouts) {
    const channel = (millis: number) => new Channel(connector, { connectMillis, answerMillis: millis })
    this.append = channel(appendMillis)
    this.flush = channel(answerMillis)
    this.#general = Array.from({ length: GENERAL_CHANNELS }, () => channel(answerMillis))
  }

  /** The least busy of the connections for loads, views, heartbeats and probes. */
  get general(): Channel {
    return this.#general.reduce((least, channel) => (channel.underWay < least.underWay ? channel : least))
  }

  async close(): Promise<void> {
    await Promise.all([this.append, this.flush, ...this.#general].map((channel) => channel.close()))
  }
}
