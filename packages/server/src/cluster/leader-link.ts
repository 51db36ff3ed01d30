import * as http from 'node:http'
import * as https from 'node:https'
import type { Socket } from 'node:net'
import { urlToHttpOptions } from 'node:url'
import { withTimeout } from '../handoff/clock.ts'
import { LeaderUnavailable, type ReadiedOf, StoreUnavailable } from '../handoff/store.ts'
import type { Peer } from '../handoff/stored.ts'
import type { LedRow } from './election.ts'
import { STREAM_TYPE } from './hint-streams.ts'
import {
  digestOf,
  errorOf,
  HINTS,
  NotTaken,
  type PeerBody,
  type PeerProblem,
  type PeerSignature,
  SIGNATURE_HEADER,
  type StreamLine,
} from './peer-protocol.ts'

/**
 * The leader writes to the stream each second. Silence is counted in ticks, so that a pause of this process
 * is not taken for it.
 */
const TICK_MILLIS = 500
const SILENT_TICKS = 10
const LONGEST_LINE = 10_000
/** How long a leader may refuse requests before its stream says that it stops. */
const REFUSED_MILLIS = 1000
/** How long a leader may take to answer the requests in flight after the end of its stream. */
const LAST_ANSWERS_MILLIS = 5000

/**
 * Why a link ended. `gone`: this leader does not answer any more. `other`: what answers is not, or not yet
 * again, a leader. `left`: it has announced its end. `broken`: it may still be there, and is tried again.
 * `closed`: this node closed the link.
 */
interface LinkEnd {
  readonly kind: 'gone' | 'other' | 'left' | 'broken' | 'closed'
  readonly reason: string
}

export interface LinkEvents {
  /** The leader has authenticated itself. */
  opened(): void
  readied(count: number, readiedOf: readonly ReadiedOf[] | null): void
  /** The leader takes no more requests. */
  leaving(): void
}

/** A follower's link to its leader: a stream with the leader's heartbeat, and connections for requests. */
export class LeaderLink {
  readonly leader: Peer
  readonly ended: Promise<LinkEnd>
  readonly #term: string
  readonly #signature: PeerSignature
  readonly #events: LinkEvents
  readonly #transport: typeof http | typeof https
  readonly #address: https.RequestOptions
  readonly #path: string
  /**
   * The event after which a request may have been sent. Over TLS that is after the leader has authenticated
   * itself.
   */
  readonly #connected: 'connect' | 'secureConnect'
  /** Concurrent requests use separate connections, so a large call-back does not block others. */
  readonly #agent: http.Agent
  readonly #end: (end: LinkEnd) => void
  readonly #inFlight = new Set<Promise<string>>()
  #stream: http.ClientRequest | undefined
  #ticker: NodeJS.Timeout | undefined
  #silentTicks = 0
  #refused: NodeJS.Timeout | undefined
  #isOpen = false
  #isOver = false
  #isLeaving = false

  /** `trusted`: CA certificates for TLS to the leader; null for those of the system. */
  constructor(row: LedRow, signature: PeerSignature, events: LinkEvents, trusted: Buffer | null = null) {
    this.leader = row.leader
    this.#term = row.leaderTerm
    this.#signature = signature
    this.#events = events
    const { hostname, port, protocol, path } = urlToHttpOptions(new URL(row.leader.url))
    this.#transport = protocol === 'https:' ? https : http
    this.#connected = protocol === 'https:' ? 'secureConnect' : 'connect'
    this.#address = { hostname, port, protocol, ...(trusted === null ? {} : { ca: trusted }) }
    this.#path = `${path?.replace(/\/+$/, '')}/peer/`
    this.#agent = new this.#transport.Agent({ keepAlive: true })
    const { promise, resolve } = Promise.withResolvers<LinkEnd>()
    this.ended = promise
    this.#end = resolve
    void promise.then((end) => this.#tearDown(end))
    this.#follow()
  }

  /** Whether the leader had sent `hello` before the link ended. */
  get wasOpen(): boolean {
    return this.#isOpen
  }

  /** How long the leader has sent nothing. */
  get silentMillis(): number {
    return this.#silentTicks * TICK_MILLIS
  }

  close(): void {
    this.#end({ kind: 'closed', reason: 'this node is no longer a follower' })
  }

  /** Resolves with the text of the answer. Rejects with NotTaken if it is certain that nothing was done. */
  async ask(verb: string, body: PeerBody): Promise<string> {
    if (this.#isOver) throw new NotTaken('the link to the leader has ended')
    const answer = this.#send(verb, body)
    this.#inFlight.add(answer)
    try {
      return await answer
    } finally {
      this.#inFlight.delete(answer)
    }
  }

  #send(verb: string, body: PeerBody): Promise<string> {
    const { header } = this.#signature.sign(verb, this.leader.nodeId, body.digest)
    return new Promise((resolve, reject) => {
      let isConnected = false
      const request = this.#request(verb, {
        method: 'POST',
        agent: this.#agent,
        headers: { [SIGNATURE_HEADER]: header, 'content-length': body.bytes },
      })
      request.on('socket', (socket: Socket) => {
        if (!socket.connecting) isConnected = true
        else socket.once(this.#connected, () => (isConnected = true))
      })
      request.on('error', (error) => {
        if (!isConnected) {
          this.#end({ kind: 'broken', reason: `${this.leader.url} cannot be reached: ${error.message}` })
          reject(new NotTaken(error.message))
        } else reject(lost(error))
      })
      request.on('response', (response) => {
        readText(response, (text) => {
          if (text === undefined) reject(lost(new Error('the answer was cut off')))
          else if (response.statusCode === 200) resolve(text)
          else reject(this.#problemIn(text, response.statusCode))
        })
      })
      for (const piece of body.pieces) request.write(piece)
      request.end()
    })
  }

  #problemIn(text: string, status = 0): Error {
    const error = errorIn(text, status)
    if (error instanceof NotTaken && !this.#isOver) this.#refusedBy(error)
    // The leader did not finish this request before it resigned. That is no fault of the store.
    if (this.#isLeaving && error instanceof StoreUnavailable && error.code === 'store_unavailable')
      return new LeaderUnavailable(error.message)
    return error
  }

  /** A leader that stops says so on its stream, and its refusals may arrive before that. */
  #refusedBy({ refusal, message }: NotTaken): void {
    const broken = () => this.#end({ kind: 'broken', reason: message })
    if (refusal !== 'not_leading') broken()
    else if (!this.#isLeaving) {
      this.#events.leaving()
      this.#refused ??= setTimeout(broken, REFUSED_MILLIS)
    }
  }

  #follow(): void {
    const { header, number } = this.#signature.sign(HINTS, this.leader.nodeId, digestOf(''))
    const stream = this.#request(HINTS, { agent: false, headers: { [SIGNATURE_HEADER]: header } })
    this.#stream = stream
    this.#ticker = setInterval(() => this.#tick(), TICK_MILLIS)
    const { url } = this.leader
    stream.on('error', (error: NodeJS.ErrnoException) => {
      const kind = error.code === 'ECONNREFUSED' ? 'gone' : 'broken'
      this.#end({ kind, reason: `${url} cannot be reached: ${error.message}` })
    })
    stream.on('response', (response) => {
      if (response.statusCode === 401) {
        readText(response, (text = '') => this.#streamRefused(errorIn(text, 401)))
        return
      }
      if (response.statusCode !== 200 || response.headers['content-type'] !== STREAM_TYPE) {
        this.#answeredByOther()
        return
      }
      let rest = ''
      response.setEncoding('utf8').on('data', (text: string) => {
        this.#silentTicks = 0
        const lines = `${rest}${text}`.split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) if (line !== '') this.#hear(line, number)
        if (rest.length > LONGEST_LINE) this.#answeredByOther()
      })
      response.on('close', () => {
        const left = this.#isLeaving
        this.#end({
          kind: left ? 'left' : 'broken',
          reason: `the leader at ${url} ${left ? 'has resigned' : 'closed the connection'}`,
        })
      })
      response.on('error', () => undefined)
    })
    stream.end()
  }

  /**
   * After this machine was suspended, its signatures are stale until the leader row is read again. The leader
   * is still there.
   */
  #streamRefused(error: Error): void {
    if (error instanceof NotTaken && error.refusal === 'stale')
      this.#end({ kind: 'broken', reason: error.message })
    else this.#answeredByOther()
  }

  #answeredByOther(): void {
    const { url } = this.leader
    this.#end({ kind: 'other', reason: `the node at ${url} is another node or is not the leader` })
  }

  #hear(text: string, number: number): void {
    let line: StreamLine
    try {
      line = JSON.parse(text)
    } catch {
      this.#answeredByOther()
      return
    }
    if ('hello' in line) {
      const { term, mac } = line.hello
      const isProved = this.#signature.isHello(mac, term, this.leader.nodeId, number)
      // The node has just taken over again, or was deposed and does not know it yet.
      if (!isProved || term !== this.#term)
        this.#end({ kind: 'broken', reason: `the node at ${this.leader.url} is the leader of another term` })
      else {
        this.#isOpen = true
        this.#events.opened()
      }
    } else if ('leaving' in line) {
      this.#isLeaving = true
      clearTimeout(this.#refused)
      this.#events.leaving()
    } else if (this.#isOpen) this.#events.readied(line.readied, line.readiedOf ?? null)
  }

  #tick(): void {
    this.#silentTicks += 1
    const seconds = (SILENT_TICKS * TICK_MILLIS) / 1000
    if (this.#silentTicks >= SILENT_TICKS)
      this.#end({
        kind: 'gone',
        reason: `the leader at ${this.leader.url} has sent nothing for ${seconds} s`,
      })
  }

  #request(verb: string, options: http.RequestOptions): http.ClientRequest {
    return this.#transport.request({ ...this.#address, path: `${this.#path}${verb}`, ...options })
  }

  /**
   * Requests in flight fail when their connections close. A leader that has resigned has carried them out, and
   * its answers may arrive after the end of its stream. If only the stream broke, the leader still answers.
   */
  async #tearDown({ kind }: LinkEnd): Promise<void> {
    this.#isOver = true
    clearInterval(this.#ticker)
    clearTimeout(this.#refused)
    this.#stream?.destroy()
    if (kind === 'left' || kind === 'broken')
      await withTimeout(Promise.allSettled(this.#inFlight), LAST_ANSWERS_MILLIS, () => [])
    this.#agent.destroy()
  }
}

/**
 * The error in the body of a response. A proxy in front of the leader answers with its own body, and with
 * 502 or 504 if it may have passed the request on.
 */
function errorIn(text: string, status: number): Error {
  try {
    return errorOf(JSON.parse(text) as PeerProblem)
  } catch {
    if (status >= 500) return lost(new Error(`another service answered with status ${status}`))
    return new NotTaken('another service answers at the address of the leader')
  }
}

/** Calls back with undefined if the response was cut off. */
function readText(response: http.IncomingMessage, done: (text: string | undefined) => void): void {
  let text = ''
  response.setEncoding('utf8')
  response.on('data', (piece: string) => {
    text += piece
  })
  response.on('end', () => done(response.complete ? text : undefined))
  response.on('error', () => done(undefined))
}

/**
 * The request may have been carried out. It is not sent again here: only the client knows whether it can be
 * repeated.
 */
function lost(cause: unknown): LeaderUnavailable {
  const detail =
    'the connection to the leader was lost before it answered, so the request may have been carried out; send it again'
  return new LeaderUnavailable(detail, { cause })
}
