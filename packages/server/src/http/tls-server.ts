import type { ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { Server } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import type { TlsFiles } from './tls-files.ts'

/** A client that takes longer to agree on keys is not one. */
const HANDSHAKE_MILLIS = 10_000

/** What Fastify makes its server with: it takes the same options for both kinds, under another name. */
export function serverOptions(tls: TlsFiles | null, options: ServerOptions): { http: ServerOptions } {
  if (tls === null) return { http: options }
  const https = { ...options, ...tls.options, handshakeTimeout: HANDSHAKE_MILLIS, allowHalfOpen: true }
  // By its types that would be another kind of instance, and each route another kind of route.
  return { https } as unknown as { http: ServerOptions }
}

/** Follows the files, and lets go of connections that are still to agree on keys when the service closes. */
export function serveTls(app: FastifyInstance, tls: TlsFiles): void {
  const server = app.server as unknown as Server
  tls.follow(server)
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

/** The same for a connection and what is secured on it. */
const endOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
