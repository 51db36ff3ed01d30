import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readied } from '../handoff/engine/readied.ts'
import type { ReadiedOf } from '../handoff/store.ts'
import type { PeerSignature, SignedRequest, StreamLine } from './peer-protocol.ts'

export const STREAM_TYPE = 'application/x-ndjson'

/** The interval of the heartbeat to followers. */
const ALIVE_MILLIS = 1000
/** Hints of partitions that became ready within this time are sent together. */
const GATHER_MILLIS = 5
/**
 * The stream of a follower that does not read is closed. Its waiting pulls are retried periodically in any
 * case.
 */
const MOST_UNREAD_BYTES = 1_000_000
/** A follower accepts lines of up to 10,000 characters. */
const LONGEST_KINDS = 3000

interface Stream {
  readonly follower: Pick<SignedRequest, 'from' | 'number'>
  readonly response: ServerResponse
  pending: Readied
}

/**
 * One endless response per follower. It carries heartbeats and hints that partitions became ready; when it
 * ends, the leader is gone. A follower may open it while this node is still taking over, and gets `hello`
 * once that is done.
 */
export class HintStreams {
  readonly #signature: PeerSignature
  readonly #streams = new Set<Stream>()
  /**
   * Null while this node takes over, when `hello` is sent later. Undefined when it neither leads nor takes
   * over.
   */
  #term: string | null | undefined
  #isLeaving = false
  #beat: NodeJS.Timeout | undefined
  #nextHint: NodeJS.Timeout | undefined
  /** Called when a follower has connected. */
  onOpen: () => void = () => undefined

  constructor(signature: PeerSignature) {
    this.#signature = signature
  }

  get size(): number {
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

  /**
   * New requests are refused from now on; running ones are finished. A follower that connects now is told to
   * wait for the end, because one that is refused would take over at once.
   */
  leave(): void {
    this.#isLeaving = true
    for (const { response } of this.#streams) write(response, { leaving: true })
  }

  end(): void {
    this.#term = undefined
    clearInterval(this.#beat)
    this.#beat = undefined
    clearTimeout(this.#nextHint)
    this.#nextHint = undefined
    for (const { response } of this.#streams) response.end()
    this.#streams.clear()
  }

  /** Returns false if this node neither leads nor is about to. */
  open(follower: SignedRequest, request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#term === undefined) return false
    const stream: Stream = { follower, response, pending: new Readied() }
    this.#streams.add(stream)
    const close = () => {
      this.#streams.delete(stream)
      response.destroy()
    }
    response.once('close', close)
    request.socket.once('end', close)
    response.shouldKeepAlive = false
    response.writeHead(200, { 'content-type': STREAM_TYPE, 'cache-control': 'no-store' })
    response.write('\n')
    if (this.#isLeaving) write(response, { leaving: true })
    else if (this.#term !== null) this.#greet(stream, this.#term)
    this.#beat ??= setInterval(() => {
      for (const one of this.#streams) one.response.write('\n')
    }, ALIVE_MILLIS)
    this.onOpen()
    return true
  }

  /** Sends a hint to all followers except the one whose request caused it. */
  hint(readied: number, readiedOf: readonly ReadiedOf[] | null = null, except?: string): void {
    if (readied <= 0 || this.#streams.size === 0) return
    for (const stream of this.#streams)
      if (stream.follower.from !== except) stream.pending.merge(readied, readiedOf)
    this.#nextHint ??= setTimeout(() => {
      this.#nextHint = undefined
      for (const stream of this.#streams) this.#sendHint(stream)
    }, GATHER_MILLIS)
  }

  #sendHint(stream: Stream): void {
    const { response, pending } = stream
    if (pending.count === 0) return
    stream.pending = new Readied()
    if (response.writableLength > MOST_UNREAD_BYTES) response.destroy()
    else write(response, { readied: pending.count, readiedOf: shortEnough(pending.kinds) })
  }

  #greet({ follower, response }: Stream, term: string): void {
    write(response, { hello: { term, mac: this.#signature.signHello(term, follower) } })
  }
}

/** If the kinds would make the line too long, they are left out, and all waiting pulls are retried. */
const shortEnough = (kinds: readonly ReadiedOf[] | null): readonly ReadiedOf[] | null =>
  kinds === null || JSON.stringify(kinds).length > LONGEST_KINDS ? null : kinds

function write(response: ServerResponse, line: StreamLine): void {
  response.write(`${JSON.stringify(line)}\n`)
}
