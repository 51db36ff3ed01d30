import type { FastifyInstance } from 'fastify'
import type { HandOff } from '../handoff/hand-off.ts'

/** Docker waits ten seconds before it kills; whoever has not read its answer by then will not. */
const PATIENCE_MILLIS = 8000
const IDLE_CHECK_MILLIS = 50

/**
 * Closing: nothing more is handed out and waiting pulls are answered at once, requests under way finish, connections
 * close as they fall idle, and then the hand-off stops and lets go of its store.
 */
export function closeInOrder(app: FastifyInstance, handOff: HandOff): void {
  let idleCheck: NodeJS.Timeout | undefined
  let deadline: NodeJS.Timeout | undefined
  app.addHook('preClose', async () => {
    handOff.drain()
    idleCheck = setInterval(() => app.server.closeIdleConnections(), IDLE_CHECK_MILLIS)
    deadline = setTimeout(() => app.server.closeAllConnections(), PATIENCE_MILLIS)
  })
  app.addHook('onClose', async () => {
    clearInterval(idleCheck)
    clearTimeout(deadline)
    await handOff.stop()
  })
}
