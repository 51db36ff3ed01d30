import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { HandOff } from '../handoff/hand-off.ts'
import type { FastPath } from './fast-path/fast-path.ts'

const IDLE_CHECK_MILLIS = 50

interface Closing {
  readonly handOff: HandOff
  readonly peers: Peers | null
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
  { handOff, peers }: Closing,
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
    while ((await connectionsUnderWay(app, fastPath)) > 0 && performance.now() < deadline)
      await pause(IDLE_CHECK_MILLIS)
    app.server.closeAllConnections()
    fastPath.closeAll()
  })
  app.addHook('onClose', () => handOff.stop())
}

function connectionsUnderWay({ server }: FastifyInstance, fastPath: FastPath): Promise<number> {
  server.closeIdleConnections()
  fastPath.closeIdle()
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)))
  })
}

/** The interface to the other nodes of the same service. */
export interface Peers {
  /** Serves a request of another node. `verb` is the part of the path after `/peer/`. */
  serve(verb: string, request: IncomingMessage, response: ServerResponse): void
  /** Called when this node drains: it gives up leadership if another node can take over. */
  leave(): Promise<void>
}

/**
 * Routes requests of other nodes before Fastify sees them. Nodes authenticate by a signature, so the Host
 * rule and tokens do not apply. A peer request carries a batch of requests, and should not pay for Fastify's
 * hooks.
 */
export function admitPeers(server: Server, basePath: string, peers: Peers): void {
  const prefix = `${basePath}/peer/`
  const others = server.listeners('request') as ((
    request: IncomingMessage,
    response: ServerResponse,
  ) => void)[]
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { url = '' } = request
    if (url.startsWith(prefix)) peers.serve(url.slice(prefix.length), request, response)
    else for (const serve of others) serve.call(server, request, response)
  })
}
