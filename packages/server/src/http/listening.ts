import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { Cluster } from '../cluster/open-cluster.ts'
import type { HandOff } from '../handoff/hand-off.ts'
import type { FastPath } from './fast-path/fast-path.ts'
import type { ClientLimiter } from './limits/limiter.ts'

/**
 * An iteration of the event loop accepts one connection of each listening socket. With one socket, a probe that
 * arrives with hundreds of connections waits for as many iterations.
 */
const SOCKETS = 32
/** How many connections wait at each of them. A probe waits behind those of its socket; more try again in a second. */
const BACKLOG = 64
/** Fastify passes this on to Node, and its types do not have all of it. */
const SHARED = { reusePort: true, backlog: BACKLOG }

/** Only Linux distributes connections over sockets that share a port. Node supports this since 23.1. */
function canSharePort(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return process.platform === 'linux' && (major > 23 || (major === 23 && minor >= 1))
}

export async function listen(http: FastifyInstance, host: string, port: number) {
  if (!canSharePort()) {
    await http.listen({ host, port })
    return
  }
  // A socket that shares its port does not find out that another service of the same user has it.
  if (port !== 0) await requireFree(host, port)
  await http.listen({ host, port, ...SHARED })
  const bound = http.server.address() as AddressInfo
  const others = Array.from({ length: SOCKETS - 1 }, () =>
    // The same options as those of an HTTP server.
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) => http.server.emit('connection', socket)),
  )
  for (const other of others) {
    other.listen({ host: bound.address, port: bound.port, ...SHARED })
    await once(other, 'listening')
  }
  http.server.once('close', () => {
    for (const other of others) other.close()
  })
}

async function requireFree(host: string, port: number): Promise<void> {
  const alone = createServer().listen({ host, port })
  await once(alone, 'listening')
  alone.close()
  await once(alone, 'close')
}

const IDLE_CHECK_MILLIS = 50

interface Closing {
  readonly handOff: HandOff
  readonly limiter: Pick<ClientLimiter, 'connections'>
  readonly cluster: Pick<Cluster, 'prepareToStop'> | null
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
  { handOff, limiter, cluster }: Closing,
  closeMillis: number,
): void {
  // Fastify sends this header only in response to requests that arrive after closing began. Earlier ones need
  // it too, or their clients would reuse the connection.
  app.addHook('onSend', async (_, reply) => {
    if (handOff.isDraining) reply.header('connection', 'close')
  })
  const closeIdle = () => {
    app.server.closeIdleConnections()
    fastPath.closeIdle()
  }
  app.addHook('preClose', async () => {
    handOff.drain()
    const deadline = performance.now() + closeMillis
    await cluster?.prepareToStop()
    closeIdle()
    while (limiter.connections.count > 0 && performance.now() < deadline) {
      await pause(IDLE_CHECK_MILLIS)
      closeIdle()
    }
    app.server.closeAllConnections()
    fastPath.closeAll()
  })
  app.addHook('onClose', () => handOff.stop())
}
