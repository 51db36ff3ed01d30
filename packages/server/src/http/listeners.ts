import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import type { FastifyInstance } from 'fastify'

/**
 * The event loop accepts one connection per listening socket and turn. With a single socket, a probe waits
 * behind a flood of connections for one turn each; with several, the kernel distributes connections over
 * them.
 */
const LISTENERS = 64

/** Several listening sockets on one address, where the system supports SO_REUSEPORT with load balancing. */
export class Listeners {
  readonly #others: Server[] = []

  async open(http: FastifyInstance, host: string, port: number): Promise<void> {
    if (!canShare()) {
      await http.listen({ host, port })
      return
    }
    // With SO_REUSEPORT, another service of the same user could already be listening on this port.
    if (port !== 0) await requireFree(host, port)
    await http.listen({ host, port, ...SHARED })
    const bound = http.server.address() as AddressInfo
    for (let count = 1; count < LISTENERS; count += 1) {
      // The same options as the sockets of an HTTP server.
      const other = createServer({ allowHalfOpen: true, noDelay: true })
      other.on('connection', (socket) => http.server.emit('connection', socket))
      other.listen({ host: bound.address, port: bound.port, ...SHARED })
      await once(other, 'listening')
      this.#others.push(other)
    }
  }

  /** The number of connections that were not accepted by the HTTP server's own socket. */
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

/**
 * Only Linux distributes connections over sockets that share a port. Node supports `reusePort` since 23.1.
 */
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
