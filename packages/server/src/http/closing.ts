import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { HandOff } from '../handoff/hand-off.ts'
import type { ExpressLane } from './express/express-lane.ts'
import type { Listeners } from './listeners.ts'
import type { Peers } from './peers.ts'

const IDLE_CHECK_MILLIS = 50

export interface Closing {
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
  lane: ExpressLane,
  { handOff, peers, listeners }: Closing,
  patienceMillis: number,
): void {
  // Fastify says it to requests that come from now on. Those that came before would use their connection again.
  app.addHook('onSend', async (_, reply) => {
    if (handOff.isDraining) reply.header('connection', 'close')
  })
  app.addHook('preClose', async () => {
    handOff.drain()
    await peers?.leave()
    const deadline = performance.now() + patienceMillis
    while ((await connectionsUnderWay(app, lane, listeners)) > 0 && performance.now() < deadline)
      await pause(IDLE_CHECK_MILLIS)
    app.server.closeAllConnections()
    lane.closeAll()
    listeners.close()
  })
  app.addHook('onClose', () => handOff.stop())
}

async function connectionsUnderWay(
  { server }: FastifyInstance,
  lane: ExpressLane,
  listeners: Listeners,
): Promise<number> {
  server.closeIdleConnections()
  lane.closeIdle()
  const own = await new Promise<number>((resolve, reject) => {
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)))
  })
  return own + (await listeners.connections())
}
