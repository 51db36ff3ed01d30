import type { IncomingMessage, ServerResponse } from 'node:http'
import { Prepared } from '../handoff/readied.ts'
import type { PreparedOf } from '../handoff/store.ts'
import type { StreamLine } from './peer-messages.ts'
import type { PeerSignature, SignedRequest } from './peer-signature.ts'

export const STREAM_TYPE = 'application/x-ndjson'

/** How often followers are told that the leader is alive. */
const ALIVE_MILLIS = 1000
/** What became ready within this time is told at once. */
const GATHER_MILLIS = 5
/** A follower that does not read is cut off: it looks now and then all the same. */
const MOST_UNREAD_BYTES = 1_000_000
/** A follower takes lines of 10,000 characters. */
const LONGEST_KINDS = 3000

interface Stream {
  readonly follower: Pick<SignedRequest, 'from' | 'number'>
  readonly response: ServerResponse
  untold: Prepared
}

/**
 * One response per follower that does not end: it says that the leader is alive and that partitions became ready, and its
 * end that the leader is gone. It opens while this node takes over, and says hello when that is done.
 */
export class HintStreams {
  readonly #signature: PeerSignature
  readonly #streams = new Set<Stream>()
  /** Null: says hello later. Undefined: this node neither leads nor is about to. */
  #term: string | null | undefined
  #beat: NodeJS.Timeout | undefined
  #telling: NodeJS.Timeout | undefined
  /** A follower has come. */
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
  }

  /** This node leads in this term, for the first time or again. */
  lead(term: string): void {
    const isFirst = this.#term === null
    this.#term = term
    if (isFirst) for (const stream of this.#streams) this.#greet(stream, term)
  }

  /** No more requests are taken; what is under way finishes. */
  leave(): void {
    this.#term = undefined
    for (const { response } of this.#streams) write(response, { leaving: true })
  }

  end(): void {
    this.#term = undefined
    clearInterval(this.#beat)
    this.#beat = undefined
    clearTimeout(this.#telling)
    this.#telling = undefined
    for (const { response } of this.#streams) response.end()
    this.#streams.clear()
  }

  /** False when there is nothing to follow here. */
  open(follower: SignedRequest, request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#term === undefined) return false
    const stream: Stream = { follower, response, untold: new Prepared() }
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
    if (this.#term !== null) this.#greet(stream, this.#term)
    this.#beat ??= setInterval(() => {
      for (const one of this.#streams) one.response.write('\n')
    }, ALIVE_MILLIS)
    this.onOpen()
    return true
  }

  /** Tells all but the one whose request it was. */
  tell(readied: number, readiedOf: readonly PreparedOf[] | null = null, except?: string): void {
    if (readied <= 0 || this.#streams.size === 0) return
    for (const stream of this.#streams)
      if (stream.follower.from !== except) stream.untold.merge(readied, readiedOf)
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined
      for (const stream of this.#streams) this.#tellOne(stream)
    }, GATHER_MILLIS)
  }

  #tellOne(stream: Stream): void {
    const { response, untold } = stream
    if (untold.count === 0) return
    stream.untold = new Prepared()
    if (response.writableLength > MOST_UNREAD_BYTES) response.destroy()
    else write(response, { readied: untold.count, readiedOf: shortEnough(untold.kinds) })
  }

  #greet({ follower, response }: Stream, term: string): void {
    write(response, { hello: { term, mac: this.#signature.signHello(term, follower) } })
  }
}

/** Where names would make the line too long to be read, waiting pulls look without them. */
const shortEnough = (kinds: readonly PreparedOf[] | null): readonly PreparedOf[] | null =>
  kinds === null || JSON.stringify(kinds).length > LONGEST_KINDS ? null : kinds

function write(response: ServerResponse, line: StreamLine): void {
  response.write(`${JSON.stringify(line)}\n`)
}
