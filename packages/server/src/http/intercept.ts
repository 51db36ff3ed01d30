import type { Server, Socket } from 'node:net'

/** Handles new connections of `server` instead of its own listeners, which `passOn` calls. */
export function intercept(
  server: Server,
  event: 'connection' | 'secureConnection',
  handle: (socket: Socket, passOn: () => void) => void,
): void {
  const listeners = server.listeners(event) as ((socket: Socket) => void)[]
  server.removeAllListeners(event)
  server.on(event, (socket: Socket) =>
    handle(socket, () => {
      for (const listener of listeners) listener.call(server, socket)
    }),
  )
}
