import { once } from 'node:events'
import { type AddressInfo, createServer, type Server as NetServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { HandOff } from '../handoff/hand-off.ts'
import type { FastPath } from './fast-path/fast-path.ts'
import type { Peers } from './forwarding.ts'

/**
 * The event loop accepts one connection per listening socket and iteration. With a single socket, a probe
 * waits behind a flood of connections for one iteration each; with several, the kernel distributes
 * connections over them.
 */
const LISTENERS = 64

/** Several listening sockets on one address, where the system supports SO_REUSEPORT with load balancing. */
export class Listeners {
  readonly #others: NetServer[] = []

  async open(http: FastifyInstance, host: string, port: number): Promise<void> {
    if (!canShare()) {
      await http.listen({ host, port })
      return
    }
    // With SO_REUSEPORT, another service of the same user could already be listening on this port.
    if (port !== 0) await requireFree(host, port)
    await http.listen({ host, port, ...SHARED })
    const bound = http.server.address() as AddressInfo
    for (let count = 1; count < LISTENERS; count += 1) {
      // The same options as the sockets of an HTTP server.
      const other = createServer({ allowHalfOpen: true, noDelay: true })
      other.on('connection', (socket) => http.server.emit('connection', socket))
      other.listen({ host: bound.address, port: bound.port, ...SHARED })
      await once(other, 'listening')
      this.#others.push(other)
    }
  }

  /** The number of connections that were not accepted by the HTTP server's own socket. */
  async connections(): Promise<number> {
    const counts = this.#others.map(
      (other) =>
        new Promise<number>((resolve, reject) => {
          other.getConnections((error, count) => (error === null ? resolve(count) : reject(error)))
        }),
    )
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
  }

  close(): void {
    for (const other of this.#others) other.close()
  }
}

const SHARED = { reusePort: true }

/**
 * Only Linux distributes connections over sockets that share a port. Node supports `reusePort` since 23.1.
 */
function canShare(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return process.platform === 'linux' && (major > 23 || (major === 23 && minor >= 1))
}

async function requireFree(host: string, port: number): Promise<void> {
  const alone = createServer()
  alone.listen({ host, port })
  await once(alone, 'listening')
  alone.close()
  await once(alone, 'close')
}

const IDLE_CHECK_MILLIS = 50

interface Closing {
  readonly handOff: HandOff
  readonly peers: Pick<Peers, 'leave'> | null
  readonly listeners: Listeners
}

/**
 * Closes the service gracefully:
 *
 * 1. Nothing more is handed out, and waiting pulls are answered immediately.
 *
 * 2. The port stays open while requests in progress finish, so that probes get 503 and settles on other
 * connections still arrive. Idle connections are closed; new ones get a moment to send their first request.
 *
 * 3. The port closes, and the hand-off stops and closes its store.
 */
export function closeGracefully(
  app: FastifyInstance,
  fastPath: FastPath,
  { handOff, peers, listeners }: Closing,
  closeMillis: number,
): void {
  // Fastify sends this header only in response to requests that arrive after closing began. Earlier ones need
  // it too, or their clients would reuse the connection.
  app.addHook('onSend', async (_, reply) => {
    if (handOff.isDraining) reply.header('connection', 'close')
  })
  app.addHook('preClose', async () => {
    handOff.drain()
    const deadline = performance.now() + closeMillis
    await peers?.leave()
    while ((await connectionsUnderWay(app, fastPath, listeners)) > 0 && performance.now() < deadline)
      await pause(IDLE_CHECK_MILLIS)
    app.server.closeAllConnections()
    fastPath.closeAll()
    listeners.close()
  })
  app.addHook('onClose', () => handOff.stop())
}

async function connectionsUnderWay(
  { server }: FastifyInstance,
  fastPath: FastPath,
  listeners: Listeners,
): Promise<number> {
  server.closeIdleConnections()
  fastPath.closeIdle()
  const own = await new Promise<number>((resolve, reject) => {
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)))
  })
  return own + (await listeners.connections())
}
