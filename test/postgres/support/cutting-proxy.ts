import { connect, createServer, type Server, type Socket } from 'node:net'

/** The COMMIT of a transaction, as the driver sends it and as the server confirms it. */
const COMMIT = Buffer.from('Q\0\0\0\x0bCOMMIT\0', 'latin1')
const COMMITTED = Buffer.from('C\0\0\0\x0bCOMMIT\0', 'latin1')

/** Autocommit statements: their Bind message, and ReadyForQuery for the next one. */
const NOTE = '\0baton-write-note'
const COMMIT_THEMSELVES = ['\0baton-hand-off-plain', NOTE]
const READY = Buffer.from('Z\0\0\0\x05I', 'latin1')

/** What PgBouncer sends to a client whose server connection broke, before it disconnects. */
const FAREWELL = Buffer.from('E\0\0\0\x30SFATAL\0VFATAL\0C08P01\0Mserver conn crashed?\0\0', 'latin1')

/**
 * `before`: the server never receives the commit. `after`: it commits, and the client does not receive the
 * answer.
 */
export type Cut = 'before' | 'after'

/**
 * A proxy between a node and PostgreSQL that cuts the connection at the worst moment: around a commit.
 * `decide` is called for each of them.
 */
export class CuttingProxy {
  readonly #server: Server
  readonly #upstream: number
  readonly #sockets = new Set<Socket>()
  /** Functions that disconnect the client side of each connection and leave the server side to finish. */
  readonly #hangUps = new Set<(isHeard: boolean) => void>()
  decide: () => Cut | null = () => null
  /** Whether it sends PgBouncer's error before it disconnects, or nothing at all. */
  isPolite = false
  /**
   * When a client sends a statement of this name, the server is unavailable to all clients until it comes
   * back.
   */
  goneAt: string | undefined
  #isGone = false
  /** Set until a note is answered whose session is to end before the next one. */
  #noteAnswered: (() => void) | undefined
  cuts = { before: 0, after: 0 }

  private constructor(server: Server, upstream: number) {
    this.#server = server
    this.#upstream = upstream
  }

  static async start(upstream: number): Promise<CuttingProxy> {
    const server = createServer()
    const proxy = new CuttingProxy(server, upstream)
    server.on('connection', (client) => proxy.#relay(client))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get port(): number {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the proxy does not listen')
    return address.port
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** The server is unavailable to all clients until it comes back. */
  leave(): void {
    this.#isGone = true
    for (const socket of this.#sockets) socket.destroy()
  }

  /**
   * Clients lose their connections, and the server still receives all that they sent. Afterwards it is
   * notified of the disconnect, as by a proxy that stops, or it is not: then its side is half-open.
   */
  hangUp({ isHeard }: { readonly isHeard: boolean }): void {
    for (const hangUp of this.#hangUps) hangUp(isHeard)
  }

  /**
   * Ends the session of the next note before the note after it. When the sender has sent the second note, it
   * gets the answer to the first and the end of the session in one packet. Resolves when the server has
   * answered the first.
   */
  endBetweenNotes(): Promise<void> {
    return new Promise((resolve) => {
      this.#noteAnswered = resolve
    })
  }

  comeBack(): void {
    this.goneAt = undefined
    this.#isGone = false
  }

  #relay(client: Socket): void {
    if (this.#isGone) {
      client.destroy()
      return
    }
    const server = connect(this.#upstream, '127.0.0.1')
    let cutAfter: Buffer | undefined
    let answered = Buffer.alloc(0)
    let heldBack: Buffer | undefined
    let isHungUp = false
    const hangUp = (isHeard: boolean) => {
      isHungUp = true
      if (isHeard) server.end()
      client.destroy()
    }
    this.#hangUps.add(hangUp)
    const end = () => {
      this.#hangUps.delete(hangUp)
      if (this.isPolite && client.writable) client.end(FAREWELL)
      else client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.setNoDelay(true)
      const ended = () => {
        if (socket === server || !isHungUp) end()
      }
      socket.on('error', ended)
      socket.on('close', ended)
    }
    client.on('data', (chunk) => {
      if (this.goneAt !== undefined && chunk.includes(this.goneAt)) {
        this.leave()
        return
      }
      if (chunk.includes(NOTE, 0, 'latin1')) {
        if (heldBack !== undefined) {
          client.end(Buffer.concat([heldBack, FAREWELL]))
          return
        }
        if (this.#noteAnswered !== undefined) heldBack = Buffer.alloc(0)
      }
      const commitsItself = COMMIT_THEMSELVES.some((name) => chunk.includes(name, 0, 'latin1'))
      const answer = chunk.includes(COMMIT) ? COMMITTED : commitsItself ? READY : undefined
      const cut = answer === undefined ? null : this.decide()
      if (cut !== null) this.cuts[cut] += 1
      if (cut === 'after') cutAfter = answer
      if (cut === 'before') end()
      else server.write(chunk)
    })
    server.on('data', (chunk) => {
      if (isHungUp) return
      if (heldBack !== undefined) {
        heldBack = Buffer.concat([heldBack, chunk])
        if (!heldBack.includes(READY)) return
        this.#noteAnswered?.()
        this.#noteAnswered = undefined
      } else if (cutAfter !== undefined) {
        answered = Buffer.concat([answered, chunk])
        if (answered.includes(cutAfter)) end()
      } else client.write(chunk)
    })
  }
}
