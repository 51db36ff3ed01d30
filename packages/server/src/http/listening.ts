import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { Cluster } from '../cluster/open-cluster.ts'
import type { HandOff } from '../handoff/hand-off.ts'
import type { FastPath } from './fast-path/fast-path.ts'

const IDLE_CHECK_MILLIS = 50

interface Closing {
  readonly handOff: HandOff
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
  { handOff, cluster }: Closing,
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
    await cluster?.prepareToStop()
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
