import { connect, createServer, type Server, type Socket } from 'node:net'

/** ReadyForQuery: all earlier requests have been answered, and committed where they commit. */
const READY = Buffer.from('Z\0\0\0\x05', 'latin1')

/** What PgBouncer sends to a client whose server connection broke, before it disconnects. */
const FAREWELL = Buffer.from('E\0\0\0\x30SFATAL\0VFATAL\0C08P01\0Mserver conn crashed?\0\0', 'latin1')

/**
 * `before`: the server never receives a request. `after`: it executes the request, and its answer is lost.
 */
export type Cut = 'before' | 'after'

/**
 * A link between a PostgreSQL client and the server that fails as networks do. Of the protocol it knows only
 * where an answer ends, so any version of the service can be behind it.
 */
export class FaultyLink {
  readonly #listener: Server
  readonly #connections = new Set<Connection>()
  /** The port of the server. It changes when another server takes over. */
  upstream: number
  /** Called for each request. */
  decide: () => Cut | null = () => null
  /** Whether it sends PgBouncer's error when it cuts, or nothing at all. */
  isPolite = false
  cuts = 0
  #isHeld = false

  private constructor(listener: Server, upstream: number) {
    this.#listener = listener
    this.upstream = upstream
  }

  static async start(upstream: number): Promise<FaultyLink> {
    const listener = createServer()
    const link = new FaultyLink(listener, upstream)
    listener.on('connection', (client) => link.#open(client))
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
    return link
  }

  get port(): number {
    const address = this.#listener.address()
    if (address === null || typeof address === 'string') throw new Error('the link does not listen')
    return address.port
  }

  async stop(): Promise<void> {
    this.reset()
    await new Promise((resolve) => this.#listener.close(resolve))
  }

  /**
   * Holds all data in both directions, of existing and new connections, until it is released. Nothing is
   * lost.
   */
  hold(): void {
    this.#isHeld = true
    for (const connection of this.#connections) connection.hold()
  }

  letGo(): void {
    this.#isHeld = false
    for (const connection of this.#connections) connection.letGo()
  }

  /**
   * The existing connections carry no data and do not close. New ones work. Returns a function that resets
   * them.
   */
  swallow(): () => void {
    const swallowed = [...this.#connections]
    for (const connection of swallowed) connection.swallow()
    return () => {
      for (const connection of swallowed) connection.end()
    }
  }

  /**
   * Requests arrive and answers are held. Returns a function that delivers them together with the end of the
   * connection. `keep` returns how many answers of a connection are delivered: the server has executed all
   * requests, and the client does not receive all answers.
   */
  holdAnswers(): (keep: (answers: number) => number) => void {
    const parting = [...this.#connections]
    for (const connection of parting) connection.holdAnswers()
    return (keep) => {
      for (const connection of parting) connection.part(keep)
    }
  }

  /** Clients lose their connections. The server is not notified, and executes what it has received. */
  hangUp(): void {
    for (const connection of this.#connections) connection.hangUp()
  }

  reset(): void {
    for (const connection of this.#connections) connection.end()
  }

  #open(client: Socket): void {
    const server = connect(this.upstream, '127.0.0.1')
    const connection = new Connection(client, server, {
      cut: () => {
        const cut = this.decide()
        if (cut !== null) this.cuts += 1
        return cut
      },
      ended: () => {
        this.#connections.delete(connection)
        return this.isPolite ? FAREWELL : null
      },
    })
    this.#connections.add(connection)
    if (this.#isHeld) connection.hold()
  }
}

interface Owner {
  cut(): Cut | null
  /** Returns what to send to the client before its connection ends. */
  ended(): Buffer | null
}

type Passage = 'open' | 'held' | 'shut'

class Connection {
  readonly #client: Socket
  readonly #server: Socket
  readonly #owner: Owner
  #requests: Passage = 'open'
  #answers: Passage = 'open'
  readonly #heldRequests: Buffer[] = []
  readonly #heldAnswers: Buffer[] = []
  /** What the server has sent since a request after whose answer the connection is cut. */
  #cutAfter: Buffer | undefined
  #isEnded = false
  /** One side has ended while the link was held: the other side is notified after all held data. */
  #isEnding = false

  constructor(client: Socket, server: Socket, owner: Owner) {
    this.#client = client
    this.#server = server
    this.#owner = owner
    for (const socket of [client, server]) {
      socket.setNoDelay(true)
      socket.on('error', () => this.#closed())
      socket.on('close', () => this.#closed())
    }
    client.on('data', (chunk) => this.#request(chunk))
    server.on('data', (chunk) => this.#answer(chunk))
  }

  hold(): void {
    if (this.#requests === 'open') this.#requests = 'held'
    if (this.#answers === 'open') this.#answers = 'held'
  }

  holdAnswers(): void {
    if (this.#answers === 'open') this.#answers = 'held'
  }

  letGo(): void {
    if (this.#requests === 'held') this.#requests = 'open'
    if (this.#answers === 'held') this.#answers = 'open'
    for (const chunk of this.#heldRequests.splice(0)) this.#request(chunk)
    const answers = this.#heldAnswers.splice(0)
    if (this.#isEnding) this.#client.end(Buffer.concat(answers))
    else for (const chunk of answers) this.#answer(chunk)
    if (this.#isEnding) this.end()
  }

  swallow(): void {
    this.#requests = 'shut'
    this.#answers = 'shut'
  }

  hangUp(): void {
    this.swallow()
    this.#client.destroy()
  }

  /** Closes the connection right after the answers. */
  part(keep: (answers: number) => number): void {
    if (this.#answers !== 'held' || this.#isEnded) return
    const held = Buffer.concat(this.#heldAnswers.splice(0))
    const ends = endsOfAnswers(held)
    this.#client.end(held.subarray(0, ends[keep(ends.length) - 1] ?? 0))
    this.end()
  }

  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    const farewell = this.#owner.ended()
    this.#server.destroy()
    if (!this.#client.writable) return
    if (farewell === null || this.#answers === 'shut') this.#client.destroy()
    else this.#client.end(farewell)
  }

  #closed(): void {
    if (this.#requests === 'open' && this.#answers === 'open') this.end()
    else this.#isEnding = true
  }

  #request(chunk: Buffer): void {
    if (this.#requests === 'held') this.#heldRequests.push(chunk)
    if (this.#requests !== 'open') return
    const cut = this.#cutAfter === undefined ? this.#owner.cut() : null
    if (cut === 'before') {
      this.end()
      return
    }
    if (cut === 'after') this.#cutAfter = Buffer.alloc(0)
    this.#server.write(chunk)
  }

  #answer(chunk: Buffer): void {
    if (this.#answers === 'held') this.#heldAnswers.push(chunk)
    if (this.#answers !== 'open') return
    if (this.#cutAfter === undefined) {
      this.#client.write(chunk)
      return
    }
    this.#cutAfter = Buffer.concat([this.#cutAfter, chunk])
    if (this.#cutAfter.includes(READY)) this.end()
  }
}

/** Where each of the answers in a stream ends. */
function endsOfAnswers(stream: Buffer): number[] {
  const ends: number[] = []
  for (let at = stream.indexOf(READY); at >= 0; at = stream.indexOf(READY, at + READY.length))
    ends.push(at + READY.length + 1)
  return ends
}
