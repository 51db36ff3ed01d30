import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { type Dispatcher, Pool } from 'undici'
import { withTimeout } from '../handoff/clock.ts'
import { LeaderUnavailable } from '../handoff/store.ts'
import type { ClusterNode, LeaderRow } from '../handoff/stored.ts'
import { HELLO, type Hello, type PeerRefusal, STREAM, STREAM_TYPE, type StreamLine } from './followers.ts'
import {
  coveredText,
  digestOf,
  FORWARDED_HEADER,
  type ForwardableRequest,
  type ForwardedAnswer,
  type ForwardedContent,
  forwardedHeaders,
  NODE_HEADER,
  REFUSED_HEADER,
  REFUSED_STATUS,
} from './forwarded-request.ts'
import type { PeerSignature } from './peer-signature.ts'

export interface LedRow extends LeaderRow {
  readonly term: string
  readonly leader: ClusterNode
}

export const isLed = (row: LeaderRow): row is LedRow => row.term !== null && row.leader !== null

/** The leader writes each second. A pause of this process is not its silence, so ticks are counted. */
const TICK_MILLIS = 500
const SILENT_TICKS = 10
const LONGEST_LINE = 10_000
/** How long a leader may refuse requests before its stream says that it stops. */
const REFUSED_MILLIS = 1000
/** How long a leader may take to answer the requests under way after the end of its stream. */
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

export interface LinkCallbacks {
  /** The leader has authenticated itself. */
  opened(): void
  /** The leader takes no more requests. */
  leaving(): void
}

/** A follower's link to its leader: a stream with the leader's heartbeat, and connections for requests. */
export class LeaderLink {
  readonly leader: ClusterNode
  readonly ended: Promise<LinkEnd>
  readonly #term: string
  readonly #signature: PeerSignature
  readonly #callbacks: LinkCallbacks
  readonly #path: string
  readonly #pool: Pool
  readonly #end: (end: LinkEnd) => void
  readonly #stream = new AbortController()
  #ticker: NodeJS.Timeout | undefined
  #silentTicks = 0
  #refused: NodeJS.Timeout | undefined
  #isOpen = false
  #isOver = false
  #isLeaving = false

  /** `trusted`: CA certificates for TLS to the leader; null for those of the system. */
  constructor(
    row: LedRow,
    signature: PeerSignature,
    callbacks: LinkCallbacks,
    trusted: Buffer | null = null,
  ) {
    this.leader = row.leader
    this.#term = row.term
    this.#signature = signature
    this.#callbacks = callbacks
    const { origin, pathname } = new URL(row.leader.url)
    this.#path = pathname.replace(/\/+$/, '')
    // One connection per request under way, and no timeouts: a silent leader ends the link.
    const connect = { timeout: 0, ...(trusted === null ? {} : { ca: trusted }) }
    this.#pool = new Pool(origin, { connections: null, headersTimeout: 0, bodyTimeout: 0, connect })
    const { promise, resolve } = Promise.withResolvers<LinkEnd>()
    this.ended = promise
    this.#end = (end) => {
      this.#isOver = true
      resolve(end)
    }
    void promise.then((end) => this.#tearDown(end))
    void this.#follow()
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

  /** This node is about to stop: the leader answers the pulls that wait for it. */
  closeStream(): void {
    clearInterval(this.#ticker)
    this.#stream.abort()
  }

  /**
   * Forwards a request. False: it is certain that nothing of it was done, so it may be sent to the next
   * leader. Rejects if that is not known. It is never sent twice: only the client knows whether it can be
   * repeated.
   */
  forward(request: ForwardableRequest, answer: ForwardedAnswer): Promise<boolean> {
    if (this.#isOver || this.#isLeaving) return Promise.resolve(false)
    const { method, target, body, client, arrivedAt, signal } = request
    const headers = forwardedHeaders(request.headers)
    const waitedMillis = Math.round(performance.now() - arrivedAt)
    const content: ForwardedContent = { ...client, digest: digestOf(body), waitedMillis }
    const covered = coveredText(method, target, headers)
    headers[FORWARDED_HEADER] = this.#signature.sign(this.leader.nodeId, content, covered)
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    let controller: Dispatcher.DispatchController | undefined
    let refusal: PeerRefusal | undefined
    let hasHead = false
    const abort = () => controller?.abort(new Error('the client has disconnected'))
    signal.addEventListener('abort', abort, { once: true })
    const failed = (error: Error) => {
      signal.removeEventListener('abort', abort)
      if (hasHead) answer.cut()
      if (hasHead || signal.aborted) resolve(true)
      else if (controller === undefined) resolve(this.#unsent(error))
      else reject(lost(error))
    }
    const handler: Dispatcher.DispatchHandler = {
      // Called when the request is written. Before that, it can be sent again.
      onRequestStart: (started) => {
        controller = started
        if (signal.aborted) abort()
      },
      onResponseStart: (_, status, received) => {
        refusal = status === REFUSED_STATUS ? (received[REFUSED_HEADER] as PeerRefusal) : undefined
        if (refusal !== undefined) return
        if (received[NODE_HEADER] !== this.leader.nodeId) {
          controller?.abort(new Error('another service answers at the address of the leader'))
          return
        }
        hasHead = true
        answer.head(status, received as IncomingHttpHeaders)
      },
      onResponseData: (started, chunk) => {
        if (hasHead && !answer.write(chunk, () => started.resume())) started.pause()
      },
      onResponseEnd: () => {
        signal.removeEventListener('abort', abort)
        if (refusal !== undefined) this.#refusedAs(refusal)
        else answer.end()
        resolve(refusal === undefined)
      },
      onResponseError: (_, error) => failed(error),
    }
    try {
      const options = { method: method as Dispatcher.HttpMethod, path: `${this.#path}${target}`, headers }
      this.#pool.dispatch({ ...options, body }, handler)
    } catch (error) {
      failed(error as Error)
    }
    return promise
  }

  #unsent(error: Error): false {
    const { url } = this.leader
    this.#end({ kind: 'broken', reason: `${url} cannot be reached: ${error.message}` })
    return false
  }

  /** A leader that stops says so on its stream, and its refusals may arrive before that. */
  #refusedAs(refusal: PeerRefusal): void {
    if (this.#isOver || refusal === 'repeated') return
    const broken = () =>
      this.#end({ kind: 'broken', reason: `${this.leader.url} refused a request as ${refusal}` })
    if (refusal !== 'not_leading') broken()
    else if (!this.#isLeaving) {
      this.#leaderLeaves()
      this.#refused ??= setTimeout(broken, REFUSED_MILLIS)
    }
  }

  #leaderLeaves(): void {
    this.#isLeaving = true
    this.#callbacks.leaving()
  }

  async #follow(): Promise<void> {
    const nonce = randomUUID()
    const authorization = this.#signature.sign(this.leader.nodeId, { nonce }, STREAM)
    const { url } = this.leader
    const { signal } = this.#stream
    this.#ticker = setInterval(() => this.#tick(), TICK_MILLIS)
    try {
      const options = {
        method: 'GET',
        path: `${this.#path}/peer/stream`,
        headers: { authorization },
        signal,
      } as const
      const { statusCode, headers, body } = await this.#pool.request(options)
      // After this machine was suspended, its signatures are stale until the leader row is read again.
      if (headers[REFUSED_HEADER] === 'stale')
        this.#end({ kind: 'broken', reason: `the clock of this node stood still` })
      else if (statusCode !== 200 || headers['content-type'] !== STREAM_TYPE) this.#answeredByOther()
      let rest = ''
      for await (const chunk of body) {
        this.#silentTicks = 0
        const lines = `${rest}${chunk}`.split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) if (line !== '') this.#hear(line, nonce)
        if (rest.length > LONGEST_LINE) this.#answeredByOther()
      }
      this.#streamEnded(`the leader at ${url} closed the connection`)
    } catch (error) {
      const reason = `${url} cannot be reached: ${(error as Error).message}`
      if (signal.aborted) return
      if (isRefusedConnection(error as Error)) this.#end({ kind: 'gone', reason })
      else this.#streamEnded(reason)
    }
  }

  #streamEnded(reason: string): void {
    if (this.#isLeaving) this.#end({ kind: 'left', reason: `the leader at ${this.leader.url} has resigned` })
    else this.#end({ kind: 'broken', reason })
  }

  #answeredByOther(): void {
    const { url } = this.leader
    this.#end({ kind: 'other', reason: `the node at ${url} is another node or is not the leader` })
  }

  #hear(text: string, nonce: string): void {
    let line: StreamLine
    try {
      line = JSON.parse(text)
    } catch {
      this.#answeredByOther()
      return
    }
    if ('leaving' in line) {
      clearTimeout(this.#refused)
      this.#leaderLeaves()
      return
    }
    const hello = this.#signature.check<Hello>(line.hello, HELLO)
    const isProved =
      typeof hello !== 'string' &&
      hello.from === this.leader.nodeId &&
      hello.to === this.#signature.nodeId &&
      hello.nonce === nonce
    // The node has just taken over again, or was deposed and does not know it yet.
    if (!isProved || hello.term !== this.#term)
      this.#end({ kind: 'broken', reason: `the node at ${this.leader.url} is the leader of another term` })
    else {
      this.#isOpen = true
      this.#callbacks.opened()
    }
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

  /** Requests fail only when their connections close: after the stream's end, answers may still arrive. */
  async #tearDown({ kind, reason }: LinkEnd): Promise<void> {
    clearInterval(this.#ticker)
    clearTimeout(this.#refused)
    this.#stream.abort()
    if (kind === 'left' || kind === 'broken')
      await withTimeout(this.#pool.close(), LAST_ANSWERS_MILLIS, () => undefined)
    await this.#pool.destroy(new Error(reason))
  }
}

/** With several addresses, Node reports all of them. */
function isRefusedConnection(error: NodeJS.ErrnoException): boolean {
  const all = error instanceof AggregateError ? (error.errors as NodeJS.ErrnoException[]) : [error]
  return all.every(({ code }) => code === 'ECONNREFUSED')
}

function lost(cause: unknown): LeaderUnavailable {
  const detail =
    'the connection to the leader was lost before it answered: the outcome is unknown, the request may have been carried out; send it again'
  return new LeaderUnavailable(detail, { cause })
}
