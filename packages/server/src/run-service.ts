import type { AddressInfo } from 'node:net'
import { type Logger, pino } from 'pino'
import type { App } from './app.ts'
import { helpText, readCommandLine } from './command-line.ts'
import { type Config, pathPrefixOf } from './config.ts'
import { StoreRefused, StoreUnavailable } from './handoff/store.ts'
import { listen } from './http/listening.ts'
import { changedSettings, readSettings } from './settings.ts'
import { SettingsError } from './settings-files.ts'
import { version } from './version.ts'

export type ServiceLog = Logger

/**
 * A structured log on standard error; standard output has only the line that says where the service listens.
 * Of the request headers only the name of the instance is logged. If headers get into a log line
 * nevertheless, the token in them is redacted.
 */
export function createLog(level: Config['logLevel']): ServiceLog {
  const secret = ['authorization', 'headers.authorization', '*.authorization', '*.headers.authorization']
  const destination = pino.destination({ dest: 2, sync: true })
  // If the disk is full or the terminal was closed, log lines are lost, but the service continues.
  destination.on('error', () => {})
  return pino({ level, base: { pid: process.pid }, redact: secret }, destination)
}

/** The exit code on a second signal. SIGHUP never forces an exit: a closing terminal may send it twice. */
const exitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: null } as const

/** Runs the service. Resolves with the exit code once it has started or failed to start. */
export async function runService(argv: readonly string[]): Promise<number> {
  try {
    await start(argv)
    return 0
  } catch (error) {
    const { lines, exitCode } = explain(error)
    for (const line of lines) process.stderr.write(`baton: ${line}\n`)
    return exitCode
  }
}

async function start(argv: readonly string[]): Promise<void> {
  const { asksFor, given } = readCommandLine(argv)
  if (asksFor === 'help') {
    process.stdout.write(helpText(version))
    return
  }
  if (asksFor === 'version') {
    process.stdout.write(`${version}\n`)
    return
  }
  const { config, warnings } = readSettings(given, process.env)
  const log = createLog(config.logLevel)
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'the service stops because of an uncaught error')
    process.exit(1)
  })
  // The app is most of the code, so it is loaded only now: --help and invalid settings need not wait for it.
  const { openApp } = await import('./app.ts')
  const app = await openApp(config, { log })
  stopOnSignal(app, log)
  const url = await openPort(app, config)
  const peerUrl = config.peerUrl ?? boundUrl(app, config)
  await app.join(peerUrl)
  for (const warning of [...warnings, ...unfitCertificate(app, config, peerUrl)]) log.warn({}, warning)
  const { instanceId, delivery } = config
  const tokens = config.tokensFile !== null
  const settings = changedSettings(config)
  log.info({ url, instanceId, version, ...app.storedIn, delivery, tokens, settings }, 'accepting requests')
  // If the disk is full or the reader is gone, this line is lost, like those of the log.
  process.stdout.on('error', () => {})
  process.stdout.write(`Baton listening on ${url}\n`)
}

async function openPort({ http, close }: App, config: Config): Promise<string> {
  const { host, port } = config
  try {
    await listen(http, host, port)
  } catch (error) {
    await close()
    throw error
  }
  const { port: bound } = http.server.address() as AddressInfo
  const name = host.includes(':') ? `[${host}]` : host
  return `${schemeOf(config)}://${name}:${bound}${pathPrefixOf(config)}`
}

const schemeOf = ({ tlsCert }: Config) => (tlsCert === null ? 'http' : 'https')

/** With the address: a host name may have several, and this node listens on one. */
function boundUrl({ http }: App, config: Config): string {
  const { address, family, port } = http.server.address() as AddressInfo
  return `${schemeOf(config)}://${family === 'IPv6' ? `[${address}]` : address}:${port}${pathPrefixOf(config)}`
}

/** Other nodes verify the certificate against the host in the URL by which they know this node. */
function unfitCertificate({ tls }: App, { databaseUrl }: Config, peerUrl: string): string[] {
  const { hostname } = new URL(peerUrl)
  if (databaseUrl === null || tls === null || tls.isFor(hostname)) return []
  return [
    `other nodes will not accept the certificate: it is not valid for ${hostname}; ` +
      'set --peer-url to a host name of the certificate',
  ]
}

/** The first signal stops the service gracefully. A second one, other than SIGHUP, ends it at once. */
function stopOnSignal(app: App, log: ServiceLog): void {
  let asked = false
  for (const [signal, exitCode] of Object.entries(exitCodes)) {
    process.on(signal, () => {
      if (asked && exitCode === null) return
      if (asked) process.exit(exitCode)
      asked = true
      const began = performance.now()
      log.info({ signal }, 'shutting down: requests in progress finish, no more partitions are handed out')
      app.close().then(
        () => {
          log.info({ millis: Math.round(performance.now() - began) }, 'stopped')
          process.exit(0)
        },
        (error: unknown) => {
          log.fatal({ err: error }, 'the shut-down failed')
          process.exit(1)
        },
      )
    })
  }
}

/** One line for faults that the operator can fix, a stack trace for the others. */
function explain(error: unknown): { lines: readonly string[]; exitCode: number } {
  if (error instanceof SettingsError) return error
  if (error instanceof StoreRefused || error instanceof StoreUnavailable)
    return { lines: [error.message], exitCode: 1 }
  const { code, syscall, hostname, address, port } = error as NodeJS.ErrnoException & {
    hostname?: string
    address?: string
    port?: number
  }
  if (syscall === 'getaddrinfo')
    return { lines: [`cannot listen on ${hostname}: the host is unknown (${code})`], exitCode: 1 }
  if (syscall === 'listen') {
    const where = port === undefined ? address : `${address ?? ''}:${port}`
    const why =
      code === 'EADDRINUSE' ? 'another process listens on this port; choose another --port' : `${code}`
    return { lines: [`cannot listen on ${where}: ${why}`], exitCode: 1 }
  }
  return { lines: [error instanceof Error ? (error.stack ?? error.message) : String(error)], exitCode: 1 }
}
