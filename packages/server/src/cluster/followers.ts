import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { withTimeout } from '../handoff/clock.ts'
import { EndCallbacks } from '../handoff/end-callbacks.ts'
import { REFUSED_HEADER, REFUSED_STATUS } from './forwarded-request.ts'
import type { PeerSignature, SignatureFault } from './peer-signature.ts'

export const STREAM_TYPE = 'application/x-ndjson'
/** What the signatures of the stream and of its first line cover. */
export const STREAM = 'stream'
export const HELLO = 'hello'

/** A line of the stream. An empty line is a heartbeat. */
export type StreamLine =
  /** Signed. */
  | { readonly hello: string }
  /** The leader takes no more requests, and finishes those it has. */
  | { readonly leaving: true }

export interface Hello {
  readonly term: string
  readonly nonce: string
}

export type PeerRefusal = SignatureFault | 'not_leading' | 'damaged'

/** The interval of the heartbeat to followers. */
const ALIVE_MILLIS = 1000
/** How long followers may take to close their connections when this node stops. */
const DISCONNECT_MILLIS = 2000

interface Stream {
  readonly follower: string
  readonly nonce: string
  readonly response: ServerResponse
}

/**
 * The leader's side of its followers. Each has one endless response, which carries heartbeats; when it ends,
 * the leader is gone. A follower may open it while this node is still taking over, and gets `hello` once that
 * is done. A follower that stops closes it first.
 */
export class Followers {
  readonly #signature: PeerSignature
  readonly #streams = new Set<Stream>()
  /** Connections on which followers forward. */
  readonly #connections = new Set<Socket>()
  /** Of the requests that followers forwarded and that wait, by follower. */
  readonly #waits = new EndCallbacks<string>()
  /** Null during the take-over; undefined when it neither leads nor takes over. */
  #term: string | null | undefined
  #isLeaving = false
  #beat: NodeJS.Timeout | undefined
  /** Called when a follower has connected. */
  onOpen: () => void = () => undefined

  constructor(signature: PeerSignature) {
    this.#signature = signature
  }

  get count(): number {
    return this.#streams.size
  }

  /** This node is about to lead. */
  prepare(): void {
    this.#term = null
    this.#isLeaving = false
  }

  /** This node leads in this term. Called again if it takes over from itself. */
  lead(term: string): void {
    const isFirst = this.#term === null
    this.#term = term
    if (isFirst) for (const stream of this.#streams) this.#greet(stream, term)
  }

  /** Finishes running requests only. Followers are told to wait: a refused one would take over at once. */
  announceEnd(): void {
    this.#isLeaving = true
    for (const { response } of this.#streams) write(response, { leaving: true })
  }

  end(): void {
    this.#term = undefined
    clearInterval(this.#beat)
    this.#beat = undefined
    for (const { response } of this.#streams) response.end()
    this.#streams.clear()
  }

  /** Serves the stream of a follower. */
  serve(request: IncomingMessage, response: ServerResponse): void {
    const signed = this.#signature.check<{ nonce: string }>(request.headers.authorization, STREAM)
    if (typeof signed === 'string') refuse(response, signed)
    else if (this.#term === undefined || signed.to !== this.#signature.nodeId) refuse(response, 'not_leading')
    else this.#open({ follower: signed.from, nonce: signed.nonce, response }, request.socket)
  }

  #open(stream: Stream, socket: Socket): void {
    const { response } = stream
    this.#streams.add(stream)
    const close = () => {
      this.#streams.delete(stream)
      response.destroy()
      this.#waits.ended(stream.follower)
    }
    response.once('close', close)
    socket.once('end', close)
    response.shouldKeepAlive = false
    response.writeHead(200, { 'content-type': STREAM_TYPE, 'cache-control': 'no-store' })
    response.write('\n')
    if (this.#isLeaving) write(response, { leaving: true })
    else if (this.#term != null) this.#greet(stream, this.#term)
    this.#beat ??= setInterval(() => {
      for (const one of this.#streams) one.response.write('\n')
    }, ALIVE_MILLIS)
    this.onOpen()
  }

  #greet({ follower, nonce, response }: Stream, term: string): void {
    const hello: Hello = { term, nonce }
    write(response, { hello: this.#signature.sign(follower, hello, HELLO) })
  }

  /** A follower has forwarded a request on this connection. */
  track(socket: Socket): void {
    if (this.#connections.has(socket)) return
    this.#connections.add(socket)
    socket.once('close', () => this.#connections.delete(socket))
  }

  /** When the followers have closed their connections. Closing them here could cut off a new request. */
  async disconnected(): Promise<void> {
    const closed = [...this.#connections].map(
      (socket) => new Promise((resolve) => socket.once('close', resolve)),
    )
    await withTimeout(Promise.all(closed), DISCONNECT_MILLIS, () => [])
  }

  /** Calls `end` when the follower stops: the pulls that it forwarded must not wait any more. */
  whenFollowerStops(follower: string, end: () => void): () => void {
    return this.#waits.add(follower, end)
  }
}

/** Nothing of the request was done. */
function refuse(response: ServerResponse, refused: PeerRefusal): void {
  response.shouldKeepAlive = false
  response.writeHead(REFUSED_STATUS, { [REFUSED_HEADER]: refused, 'content-length': 0 }).end()
}

function write(response: ServerResponse, line: StreamLine): void {
  response.write(`${JSON.stringify(line)}\n`)
}
