import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { HandOff } from '../handoff/hand-off.ts'
import type { FastPath } from './fast-path/fast-path.ts'
import type { Listeners } from './listeners.ts'

/** The other nodes of the same service, and what they ask this one. */
export interface Peers {
  /** `verb` is what stands behind `/peer/` in the path. */
  serve(verb: string, request: IncomingMessage, response: ServerResponse): void
  /** This node takes nothing new: another one may take its place. */
  leave(): Promise<void>
}

/**
 * Lets other nodes in before everything else: they prove who they are by a signature, so neither the Host rule nor tokens
 * are for them, and a batch of requests should cost one request, not the hooks of Fastify beside it.
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

const IDLE_CHECK_MILLIS = 50

interface Closing {
  readonly handOff: HandOff
  readonly peers: Peers | null
  readonly listeners: Listeners
}

/**
 * Closing: nothing more is handed out and waiting pulls are answered at once. While requests under way finish, the
 * port stays open, so that a probe reads 503 instead of nothing and settlements of other connections still arrive;
 * connections close as they fall idle, and new ones are given a moment for their first request. Then the port closes,
 * and the hand-off stops and lets go of its store.
 */
export function closeInOrder(
  app: FastifyInstance,
  fastPath: FastPath,
  { handOff, peers, listeners }: Closing,
  headTimeoutMillis: number,
): void {
  // Fastify says it to requests that come from now on. Those that came before would use their connection again.
  app.addHook('onSend', async (_, reply) => {
    if (handOff.isDraining) reply.header('connection', 'close')
  })
  app.addHook('preClose', async () => {
    handOff.drain()
    await peers?.leave()
    const deadline = performance.now() + headTimeoutMillis
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
