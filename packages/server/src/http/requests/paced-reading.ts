import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { TimeSlicer } from './time-slicer.ts'

/** For so many iterations, each request of a connection that has pipelined waits. */
const WAITING_ITERATIONS = 1000
/** In this time, one piece of what follows other requests is parsed: clients rarely pipeline, and floods do. */
const PIPELINED_MILLIS = 1
/** How much is parsed before requests are counted: 14 of the shortest requests. */
const PIECE_BYTES = 256
/**
 * The end of a chunked body is unknown, so that requests may follow it in the same piece, and chunks may be as
 * short as a byte, each parsed and kept on its own. Both have line ends: a piece has so many, and counts as one
 * request. If the text of the body has line ends too, its pieces are shorter.
 */
const CHUNKED_PIECE_LINES = 32
const LINE_END = 0x0a
export const HEAD_END = '\r\n\r\n'
/** Parsing a longer head, most of it query, takes long. The fast path serves no longer ones. */
export const LONGEST_HEAD_BYTES = 4096

/** Whether a head is still not complete when it is too long to be short. `earlierBytes` of it were read before. */
function hasLongHead(bytes: Buffer, earlierBytes: number): boolean {
  const most = LONGEST_HEAD_BYTES - earlierBytes
  return bytes.length > most && (most <= 0 || !bytes.subarray(0, most).includes(HEAD_END))
}

interface PaceRules {
  /** Of a connection. */
  readonly mostUnderWay: number
  /** Reads long heads. */
  readonly slicer: TimeSlicer
}

/**
 * Limits the requests that are parsed one after the other. Node parses everything that it has read from a
 * connection at once, which is thousands of pipelined requests, and no route, however cheap, can make up for
 * that. Clients that send one request at a time never wait; what follows another request does.
 * Long heads are bulk work, also of clients that send one at a time. Bodies with a length are not bounded here.
 * The fast path reads one request at a time and passes a connection on before it gets here.
 */
export function paceReading(server: Server, isSecure: boolean, rules: PaceRules): void {
  const pace = new Pace()
  const connections = new WeakMap<Socket, PacedConnection>()
  server.on(isSecure ? 'secureConnection' : 'connection', (socket: Socket) => {
    connections.set(socket, new PacedConnection(socket, pace, rules))
  })
  const note = (request: IncomingMessage, response: ServerResponse) =>
    connections.get(request.socket)?.noteRequest(request, response)
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.prependListener(event, note)
}

/** Continues with waiting connections, in order. */
class Pace {
  /** What follows another request of the connection. */
  readonly #pipelined = new Set<PacedConnection>()
  /** Chunked bodies: one goes on in each iteration. */
  readonly #bodies = new Set<PacedConnection>()
  #requests = 0
  #isScheduled = false
  #timer: NodeJS.Timeout | undefined
  /** The number of the current iteration. */
  iteration = 0

  noteRequest(): void {
    this.#requests += 1
    this.#schedule()
  }

  add(connection: PacedConnection, isInBody: boolean): void {
    if (isInBody) {
      this.#bodies.add(connection)
      this.#schedule()
    } else {
      this.#pipelined.add(connection)
      this.#timer ??= setTimeout(this.#nextPipelined, PIPELINED_MILLIS)
    }
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
    this.#goOn(this.#bodies)
    if (this.#bodies.size > 0) this.#schedule()
  }

  readonly #nextPipelined = (): void => {
    this.#goOn(this.#pipelined)
    this.#timer = this.#pipelined.size > 0 ? setTimeout(this.#nextPipelined, PIPELINED_MILLIS) : undefined
  }

  /** Until a request is parsed. */
  #goOn(waiting: Set<PacedConnection>): void {
    const { size } = waiting
    const requests = this.#requests
    let seen = 0
    for (const connection of waiting) {
      if (seen === size || this.#requests > requests) break
      seen += 1
      waiting.delete(connection)
      connection.goOn()
    }
  }
}

/** Stands between a socket and the HTTP parser of Node's server. */
class PacedConnection {
  readonly #socket: Socket & { readonly _paused?: boolean }
  readonly #pace: Pace
  readonly #rules: PaceRules
  readonly #parse: (bytes: Buffer) => void
  /** Whether bytes that were read went back to the socket, which emits no 'end' as long as it has them. */
  #isWaiting = false
  #waitingBytes = 0
  /** The fast path passes the first bytes on when it is their turn. */
  #hasTurn = true
  #iteration = 0
  #requests = 0
  /** Up to this iteration, everything waits. */
  #waitsUntil = 0
  #underWay = 0
  #last: IncomingMessage | undefined
  /** Of the head that is being read. */
  #headBytes = 0
  /** Whether a long head is next. */
  #isBulk = false
  #isInSlicer = false
  /** At least this much of the body of the last request is still to come; NaN if that is unknown. */
  #bodyBytes = 0

  constructor(socket: Socket, pace: Pace, rules: PaceRules) {
    this.#socket = socket
    this.#pace = pace
    this.#rules = rules
    const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[]
    if (parse === undefined) throw new Error("Node's HTTP server does not read this connection")
    this.#parse = parse
    socket.off('data', parse)
    // Adding this listener also makes Node deliver data here instead of to its parser.
    socket.on('data', this.#onData)
    // Node and the limit of pipelining resume the connection after responses and for bodies.
    socket.on('resume', () => {
      if (!this.#isWaiting && !this.#isPausedByNode) return
      socket.pause()
      this.#wake()
    })
  }

  noteRequest(request: IncomingMessage, response: ServerResponse): void {
    this.#requests += 1
    this.#underWay += 1
    this.#last = request
    this.#headBytes = 0
    this.#bodyBytes = Number(request.headers['content-length'] ?? Number.NaN)
    this.#pace.noteRequest()
    response.once('close', () => {
      this.#underWay -= 1
      this.#wake()
    })
  }

  /** Continues to parse what has arrived. */
  goOn(): void {
    if (!this.#isWaiting || this.#isBlocked) return
    this.#isWaiting = false
    this.#isBulk = false
    this.#hasTurn = true
    // Without a length, everything that has arrived since would be copied together, for each piece.
    this.#socket.read(this.#waitingBytes)
    this.#hasTurn = false
    if (!this.#isWaiting && !this.#isPausedByNode) this.#socket.resume()
  }

  readonly #onData = (bytes: Buffer): void => {
    if (!this.#hasTurn && !this.#isInBody && hasLongHead(bytes, this.#headBytes)) {
      this.#isBulk = true
      this.#wait(bytes)
    } else if (!this.#hasTurn && this.#pace.iteration < this.#waitsUntil) this.#wait(bytes)
    else this.#read(bytes)
    this.#hasTurn = false
  }

  #wait(rest: Buffer): void {
    this.#isWaiting = true
    this.#waitingBytes = rest.length
    this.#socket.pause()
    this.#socket.unshift(rest)
    this.#wake()
  }

  #read(bytes: Buffer): void {
    if (this.#iteration !== this.#pace.iteration) {
      this.#iteration = this.#pace.iteration
      this.#requests = 0
    }
    for (let at = 0; at < bytes.length; ) {
      // Nothing that follows can be answered.
      if (this.#socket.destroyed || !this.#socket.writable) return
      if (this.#isBlocked || !this.#mayReadOn) {
        this.#waitsUntil = this.#iteration + WAITING_ITERATIONS
        this.#wait(bytes.subarray(at))
        return
      }
      const piece = bytes.subarray(at, this.#endOfPiece(bytes, at))
      at += piece.length
      if (this.#isInChunkedBody) {
        this.#requests += 1
        this.#pace.noteRequest()
      }
      this.#headBytes = this.#isInBody ? 0 : this.#headBytes + piece.length
      this.#parse(piece)
      // Also if the request began in this piece: its head may end anywhere in it.
      this.#bodyBytes -= piece.length
    }
  }

  /** A request is read with its body. With the end of a body, the next request may be read. */
  get #mayReadOn(): boolean {
    return this.#requests === 0 || (this.#requests === 1 && this.#isInBodyOfLength)
  }

  #endOfPiece(bytes: Buffer, start: number): number {
    if (this.#isInBodyOfLength) return start + Math.max(PIECE_BYTES, this.#bodyBytes)
    if (!this.#isInChunkedBody) return start + PIECE_BYTES
    let end = start
    for (let lines = 0; lines < CHUNKED_PIECE_LINES; lines += 1) {
      const lineEnd = bytes.indexOf(LINE_END, end)
      if (lineEnd === -1) return bytes.length
      end = lineEnd + 1
    }
    return end
  }

  get #isInBody(): boolean {
    return this.#last?.complete === false
  }

  get #isInBodyOfLength(): boolean {
    return this.#isInBody && !Number.isNaN(this.#bodyBytes)
  }

  get #isInChunkedBody(): boolean {
    return this.#isInBody && Number.isNaN(this.#bodyBytes)
  }

  #wake(): void {
    if (!this.#isWaiting || this.#isBlocked) return
    if (!this.#isBulk) this.#pace.add(this, this.#isInBody)
    else if (!this.#isInSlicer) {
      this.#isInSlicer = true
      this.#rules.slicer.add(this.#socket, () => {
        this.#isInSlicer = false
        this.goOn()
        return false
      })
    }
  }

  /** Whether something else has to happen first: an event follows when it has. */
  get #isBlocked(): boolean {
    return this.#isPausedByNode || this.#underWay > this.#rules.mostUnderWay
  }

  /** Node stops reading while the client does not read its responses. Its parser must not be called then. */
  get #isPausedByNode(): boolean {
    return this.#socket._paused === true
  }
}
