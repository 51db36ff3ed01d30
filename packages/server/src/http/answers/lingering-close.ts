import type { IncomingMessage } from 'node:http'

/** How much of a refused body is read and discarded before the connection is closed. */
const MOST_DISCARDED_BYTES = 64 * 2 ** 20

/**
 * Lets a client that sends its whole request before it reads the response, such as Python's urllib, read the
 * refusal of its body. If a connection is closed while unread bytes arrive, the kernel resets it, and the
 * client gets an error instead of the response. So the rest of the body is read and discarded first. How long
 * that takes is bounded by the time in which a request must arrive.
 */
export function lingerUntilSent(request: IncomingMessage): void {
  if (request.complete) return
  const { socket } = request
  // Node calls this after the last response of the connection.
  const close = socket.destroySoon
  socket.destroySoon = () => {
    socket.destroySoon = close
    if (request.complete) {
      socket.destroySoon()
      return
    }
    const most = socket.bytesRead + MOST_DISCARDED_BYTES
    request.on('data', () => {
      if (socket.bytesRead > most) socket.destroy()
    })
    request.once('end', () => socket.destroySoon())
    socket.end()
  }
}
