import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import type { FastifyInstance } from 'fastify'

/**
 * From each listening socket the event loop accepts one connection per turn. With a single one, a probe waits behind a
 * flood of connections for as many turns; with several, the system spreads connections over them.
 */
const LISTENERS = 16

/** Several listening sockets on one address, where the system can share it among them. */
export class Listeners {
  readonly #others: Server[] = []

  async open(http: FastifyInstance, host: string, port: number): Promise<void> {
    if (!canShare()) {
      await http.listen({ host, port })
      return
    }
    // A shared port would also be shared with another service of the same user.
    if (port !== 0) await requireFree(host, port)
    await http.listen({ host, port, ...SHARED })
    const bound = http.server.address() as AddressInfo
    for (let count = 1; count < LISTENERS; count += 1) {
      // Half-open as the connections of an HTTP server are.
      const other = createServer({ allowHalfOpen: true, noDelay: true })
      other.on('connection', (socket) => http.server.emit('connection', socket))
      other.listen({ host: bound.address, port: bound.port, ...SHARED })
      await once(other, 'listening')
      this.#others.push(other)
    }
  }

  /** Connections that came in beside those of the HTTP server's own socket. */
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

/** Other systems than Linux share a port without spreading connections; Node knows how from 23.1 on. */
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
