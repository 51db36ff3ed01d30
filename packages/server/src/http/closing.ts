import type { FastifyInstance } from 'fastify'
import type { HandOff } from '../handoff/hand-off.ts'

const IDLE_CHECK_MILLIS = 50

/**
 * Closing: nothing more is handed out and waiting pulls are answered at once, requests under way finish, connections
 * close as they fall idle, and then the hand-off stops and lets go of its store.
 */
export function closeInOrder(app: FastifyInstance, handOff: HandOff, patienceMillis: number): void {
  let idleCheck: NodeJS.Timeout | undefined
  let deadline: NodeJS.Timeout | undefined
  app.addHook('preClose', async () => {
    handOff.drain()
    idleCheck = setInterval(() => app.server.closeIdleConnections(), IDLE_CHECK_MILLIS)
    deadline = setTimeout(() => app.server.closeAllConnections(), patienceMillis)
  })
  app.addHook('onClose', async () => {
    clearInterval(idleCheck)
    clearTimeout(deadline)
    await handOff.stop()
  })
}
