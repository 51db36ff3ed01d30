import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ServerOptions } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { createSecureContext, type Server } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import type { Log } from '../handoff/log.ts'
import { type FileReload, ReloadedFile, SettingsError } from '../settings-files.ts'
import { lastAnswer } from './answers/client-errors.ts'
import { intercept } from './intercept.ts'

interface TlsPaths {
  readonly cert: string
  readonly key: string
}

interface Pair {
  readonly cert: Buffer
  readonly key: Buffer
  readonly certificate: X509Certificate
}

/**
 * Certificate and key of the service. When the files change, new connections use the new ones; open
 * connections keep the old.
 */
export class TlsFiles {
  readonly #file: ReloadedFile<Pair>

  /** Throws a SettingsError when the files cannot be used. */
  constructor(paths: TlsPaths, log: Log) {
    this.#file = new ReloadedFile({
      path: paths.cert,
      read: (_before, reads) => {
        reads(paths.key)
        const pair = readPair(paths)
        const { validTo } = pair.certificate
        const isExpired = Date.parse(validTo) < Date.now()
        return {
          value: pair,
          warnings: isExpired ? [`the certificate has expired on ${validTo}: clients will refuse it`] : [],
        }
      },
      // The two files belong together, and one may be written some time before the other.
      whenQuiet: true,
      refusal: 'the changed certificate is invalid; the previous certificate stays in use',
      changed: (_before, { certificate }) => `${certificate.subject ?? ''}, valid to ${certificate.validTo}`,
      log,
    })
  }

  get options(): { readonly cert: Buffer; readonly key: Buffer } {
    const { cert, key } = this.#file.current
    return { cert, key }
  }

  /** Whether clients that connect to this host, a name or an address, accept the certificate. */
  isFor(host: string): boolean {
    const name = host.replace(/^\[|\]$/g, '')
    const { certificate } = this.#file.current
    return (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined
  }

  onReload(listener: (reload: FileReload<Pair>) => void): void {
    this.#file.onReload(listener)
  }

  close(): void {
    this.#file.close()
  }
}

function readPair(paths: TlsPaths): Pair {
  const cert = read('certificate', paths.cert)
  const key = read('key', paths.key)
  const faults: string[] = []
  let certificate: X509Certificate | undefined
  try {
    certificate = new X509Certificate(cert)
  } catch {
    faults.push(`the certificate ${paths.cert} is not a certificate in PEM`)
  }
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(key.toString('latin1')))
    faults.push(`the key ${paths.key} is not a private key in PEM`)
  if (certificate === undefined || faults.length > 0) throw new SettingsError(faults)
  try {
    createSecureContext({ cert, key })
  } catch (error) {
    throw new SettingsError([unusable(paths, error)])
  }
  return { cert, key, certificate }
}

function unusable({ cert, key }: TlsPaths, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (/MISMATCH/.test(code ?? '')) return `the key ${key} does not belong to the certificate ${cert}`
  if (/PASSWORD|PASSPHRASE|BAD_DECRYPT|INTERRUPTED/i.test(`${code} ${message}`))
    return `the key ${key} is encrypted: use an unencrypted key, in a file that only the service can read`
  return `the certificate ${cert} and the key ${key} cannot be used (${code ?? message})`
}

function read(what: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new SettingsError([`the ${what} ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`])
  }
}

/** The timeout of the TLS handshake. */
const HANDSHAKE_MILLIS = 10_000

/** The server options for Fastify, which expects them under `http` or `https`. */
export function serverOptions(tls: TlsFiles | null, options: ServerOptions): { http: ServerOptions } {
  if (tls === null) return { http: options }
  const https = { ...options, ...tls.options, handshakeTimeout: HANDSHAKE_MILLIS, allowHalfOpen: true }
  // In Fastify's types, `https` options give a different instance type, and every route would need both.
  return { https } as unknown as { http: ServerOptions }
}

const NOT_TLS = 'this port uses TLS, and the request is plain HTTP; use a URL that begins with https://'

/** Answers plain HTTP, which a handshake would refuse without a word. */
export function refusePlainHttp(app: FastifyInstance): void {
  intercept(app.server, 'connection', (socket, shakeHands) => {
    const ignore = () => {}
    const late = setTimeout(() => socket.destroy(), HANDSHAKE_MILLIS)
    socket.on('error', ignore).once('close', () => clearTimeout(late))
    socket.once('readable', () => {
      const first: Buffer | null = socket.read()
      if (first !== null && isLetter(first[0] ?? 0)) {
        socket.resume().end(lastAnswer({ code: 'bad_request', detail: NOT_TLS }), () => socket.destroySoon())
        return
      }
      clearTimeout(late)
      if (first !== null) socket.unshift(first)
      shakeHands()
      socket.off('error', ignore)
    })
  })
}

/** Requests begin with a method; the first byte of a handshake is no letter. */
const isLetter = (byte: number) => (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a)

/**
 * Applies reloaded certificates, and on shutdown destroys connections that have not finished their handshake.
 */
export function serveTls(app: FastifyInstance, tls: TlsFiles): void {
  const server = app.server as unknown as Server
  tls.onReload(() => server.setSecureContext(tls.options))
  const shaking = new Map<string, Socket>()
  let isClosing = false
  server.on('connection', (socket: Socket) => {
    if (isClosing) {
      socket.destroy()
      return
    }
    const end = endOf(socket)
    shaking.set(end, socket)
    socket.once('close', () => shaking.delete(end))
  })
  server.on('secureConnection', (socket: Socket) => shaking.delete(endOf(socket)))
  app.addHook('preClose', async () => {
    isClosing = true
    for (const socket of shaking.values()) socket.destroy()
  })
}

/** Identifies a connection: the same for the raw socket and the TLS socket on top of it. */
const endOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
