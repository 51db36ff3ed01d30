import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A connection that has sent more requests than this continues in the next iteration of the event loop. */
const REQUESTS_PER_CONNECTION = 2
/** As soon as all connections have sent this many, the others continue in the next iteration. */
const REQUESTS_IN_ALL = 12
/** How much is parsed before requests are counted: 14 of the shortest requests. */
const PIECE_BYTES = 256
/**
 * The end of a chunked body is unknown, so that requests may follow it in the same piece, which counts as one.
 * Chunks may be as short as a byte, and each is parsed and kept on its own.
 */
const CHUNKED_PIECE_BYTES = 8192
/** A chunk has two line ends. The text in it may have more: then a piece is shorter. */
const CHUNKED_PIECE_LINES = 32
const LINE_END = 0x0a

interface Paced {
  /** Continues to parse what has arrived. */
  goOn(): void
}

/**
 * Limits the requests that are parsed in one iteration of the event loop, per connection and in all. Node
 * parses everything that it has read from a connection at once, which is thousands of pipelined requests, and
 * no route, however cheap, can make up for that. Bodies with a length are not bounded here. The fast path reads
 * one request at a time and passes a connection on before it gets here.
 */
export function paceReading(server: Server, isSecure: boolean, mostUnderWay: number): void {
  const pace = new Pace()
  const connections = new WeakMap<Socket, PacedConnection>()
  server.on(isSecure ? 'secureConnection' : 'connection', (socket: Socket) => {
    connections.set(socket, new PacedConnection(socket, pace, mostUnderWay))
  })
  const note = (request: IncomingMessage, response: ServerResponse) =>
    connections.get(request.socket)?.noteRequest(request, response)
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.prependListener(event, note)
}

/** Counts the requests of an iteration, and continues with waiting connections in the next one, in order. */
class Pace {
  readonly #waiting = new Set<Paced>()
  #requests = 0
  #isScheduled = false
  /** The number of the current iteration. */
  iteration = 0

  noteRequest(): void {
    this.#requests += 1
    this.#schedule()
  }

  get isUsedUp(): boolean {
    return this.#requests >= REQUESTS_IN_ALL
  }

  add(connection: Paced): void {
    this.#waiting.add(connection)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#nextIteration)
  }

  readonly #nextIteration = (): void => {
    this.#isScheduled = false
    this.iteration += 1
    this.#requests = 0
    for (const connection of [...this.#waiting]) {
      if (this.isUsedUp) break
      this.#waiting.delete(connection)
      connection.goOn()
    }
    if (this.#waiting.size > 0) this.#schedule()
    // Connections that have sent one request now and then do not wait behind those that flood.
    this.#requests = 0
  }
}

/** Stands between a socket and the HTTP parser of Node's server. */
class PacedConnection implements Paced {
  readonly #socket: Socket & { readonly _paused?: boolean }
  readonly #pace: Pace
  readonly #mostUnderWay: number
  readonly #parse: (bytes: Buffer) => void
  /** What was read and is not parsed yet. Nothing more is read meanwhile. */
  #rest: Buffer | null = null
  #iteration = 0
  #requests = 0
  #underWay = 0
  #last: IncomingMessage | undefined
  /** At least this much of the body of the last request is still to come; NaN if that is unknown. */
  #bodyBytes = 0

  constructor(socket: Socket, pace: Pace, mostUnderWay: number) {
    this.#socket = socket
    this.#pace = pace
    this.#mostUnderWay = mostUnderWay
    const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[]
    if (parse === undefined) throw new Error("Node's HTTP server does not read this connection")
    this.#parse = parse
    socket.off('data', parse)
    // Adding this listener also makes Node deliver data here instead of to its parser.
    socket.on('data', this.#onData)
    // Node and the limit of pipelining resume the connection after responses and for bodies.
    socket.on('resume', () => {
      if (this.#rest === null && !this.#isPausedByNode) return
      socket.pause()
      this.#wake()
    })
  }

  noteRequest(request: IncomingMessage, response: ServerResponse): void {
    this.#requests += 1
    this.#underWay += 1
    this.#last = request
    this.#bodyBytes = Number(request.headers['content-length'] ?? Number.NaN)
    this.#pace.noteRequest()
    response.once('close', () => {
      this.#underWay -= 1
      this.#wake()
    })
  }

  goOn(): void {
    const rest = this.#rest
    if (rest === null || this.#isBlocked) return
    this.#rest = null
    this.#read(rest)
    if (this.#rest === null && !this.#isPausedByNode) this.#socket.resume()
  }

  readonly #onData = (bytes: Buffer): void => {
    this.#read(bytes)
  }

  #read(bytes: Buffer): void {
    if (this.#iteration !== this.#pace.iteration) {
      this.#iteration = this.#pace.iteration
      this.#requests = 0
    }
    for (let at = 0; at < bytes.length; ) {
      // Nothing that follows can be answered.
      if (this.#socket.destroyed || !this.#socket.writable) return
      if (this.#isBlocked || this.#requests >= REQUESTS_PER_CONNECTION || this.#pace.isUsedUp) {
        this.#rest = bytes.subarray(at)
        this.#socket.pause()
        this.#wake()
        return
      }
      const piece = bytes.subarray(at, this.#endOfPiece(bytes, at))
      at += piece.length
      if (this.#isInChunkedBody) {
        this.#requests += 1
        this.#pace.noteRequest()
      }
      this.#parse(piece)
      // Also if the request began in this piece: its head may end anywhere in it.
      this.#bodyBytes -= piece.length
    }
  }

  #endOfPiece(bytes: Buffer, start: number): number {
    if (this.#last === undefined || this.#last.complete) return start + PIECE_BYTES
    if (!this.#isInChunkedBody) return start + Math.max(PIECE_BYTES, this.#bodyBytes)
    const piece = bytes.subarray(start, start + CHUNKED_PIECE_BYTES)
    let length = 0
    for (let lines = 0; lines < CHUNKED_PIECE_LINES; lines += 1) {
      const lineEnd = piece.indexOf(LINE_END, length)
      if (lineEnd === -1) return start + piece.length
      length = lineEnd + 1
    }
    return start + length
  }

  get #isInChunkedBody(): boolean {
    return this.#last?.complete === false && Number.isNaN(this.#bodyBytes)
  }

  #wake(): void {
    if (this.#rest !== null && !this.#isBlocked) this.#pace.add(this)
  }

  /** Whether something else has to happen first: an event follows when it has. */
  get #isBlocked(): boolean {
    return this.#isPausedByNode || this.#underWay > this.#mostUnderWay
  }

  /** Node stops reading while the client does not read its responses. Its parser must not be called then. */
  get #isPausedByNode(): boolean {
    return this.#socket._paused === true
  }
}
