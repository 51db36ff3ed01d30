import type { Socket } from 'node:net'
import { errorCodes } from '@baton/protocol'
import { REFUSED_HEADER, REFUSED_STATUS } from '../../cluster/forwarded-request.ts'
import { answerClientError, lastAnswer, statusWords } from '../answers/client-errors.ts'
import { type AnswerHeaders, commonHeaders, securityHeaders } from '../answers/headers.ts'
import { type Problem, type ProblemOf, RequestProblem, writtenProblem } from '../answers/problems.ts'
import { parseJsonBytes } from '../bodies/json-bytes.ts'
import { NotServed } from '../forwarded-client.ts'
import type { Forwarding } from '../forwarding.ts'
import type { ClientLimiter } from '../limits/limiter.ts'
import type { LogAnswer } from '../observability/answered-requests.ts'
import { hasHungUp } from '../requests/disconnects.ts'
import type { Exchange } from '../requests/exchange.ts'
import { allowWaits, endWaits } from '../requests/pipelining.ts'
import type { TimeSlicer } from '../requests/time-slicer.ts'
import type { RouteContext } from '../route-context.ts'
import { type FastRequest, HeadCache, type RouteOf } from './heads.ts'

/** Larger requests go to Node's server; this is enough for a thousand settlements with reasons. */
const LONGEST_PLAIN_REQUEST = 256 * 1024
/** How many bytes are read while a request is being answered. Further bytes stay in the socket. */
const MAX_SENT_AHEAD_BYTES = 16 * 1024
/** A connection that begins with more, a long head or a large body, is bulk work for Node's server. */
const BULK_BYTES = 4096
/** How many of those of an address wait. */
const MOST_BULK_WAITING = 256
const TOO_MUCH_BULK = lastAnswer({
  code: 'overloaded',
  detail: 'too many requests of more than 4 KiB come from this address at once; send the request again later',
})
/** For this long a new connection does not count as idle: its first request may be in transit or unread. */
const FIRST_REQUEST_MILLIS = 1000

/** What the connections of the fast path share. */
export interface FastPathParts extends Pick<RouteContext, 'keyOwner' | 'isSecure'> {
  /** While it drains, each response is the last of its connection. */
  readonly handOff: { readonly isDraining: boolean }
  readonly problemOf: ProblemOf
  readonly limiter: ClientLimiter
  /** Null: requests are not logged. */
  readonly logAnswer: LogAnswer | null
  /** Null: this node is the only one. */
  readonly forwarding: Forwarding | null
  /** Passes connections on that begin with bulk work. */
  readonly slicer: TimeSlicer
}

interface FastPathRules extends FastPathParts {
  readonly keepAliveMillis: number
  readonly routeOf: RouteOf
  /** How long to wait for the rest of a request. Then the timeouts of Node's server apply. */
  readonly headTimeoutMillis: number
  /** Passes the socket to Node's HTTP server. */
  handOver(): void
  /** Called when the connection is closed or was passed to Node's HTTP server. */
  left(): void
}

/** Serves one request after the other until one arrives that the fast path does not serve. */
export class FastConnection {
  readonly #socket: Socket
  readonly #rules: FastPathRules
  readonly #heads: HeadCache
  readonly #openedAt = performance.now()
  /** Instead of the socket's timeout, which restarts on every read and write (bench scenario one-by-one). */
  #idleTimer: NodeJS.Timeout
  #idleCheck: NodeJS.Immediate | undefined
  #idleSince = this.#openedAt
  #isAnswering = false
  /** Whether a response to the current request was written. */
  #isAnswered = false
  #moreHeaders: AnswerHeaders = NO_HEADERS
  /** The first part of a request, or bytes that arrived while another request is being answered. */
  #waiting: Buffer[] = []
  #waitingBytes = 0
  /** How many bytes must be there before they are parsed again. */
  #neededBytes = 0
  #headTimer: NodeJS.Timeout | undefined

  constructor(socket: Socket, rules: FastPathRules) {
    this.#socket = socket
    this.#rules = rules
    this.#heads = new HeadCache(rules.routeOf, rules.keyOwner)
    socket.setNoDelay(true)
    this.#idleTimer = setTimeout(this.#onIdle, rules.keepAliveMillis)
    socket.on('error', this.#onError).on('end', this.#onEnd)
    socket.on('close', this.#onClose).on('drain', this.#onDrain).on('data', this.#onData)
  }

  close(): void {
    this.#socket.destroy()
  }

  /** Clears the cache, so that the next request is admitted again. */
  forgetHeads(): void {
    this.#heads.forget()
  }

  closeIfIdle(): void {
    if (!this.#isBusy && !this.#isFresh) this.close()
  }

  /** True also while the rest of a request is missing. */
  get #isBusy(): boolean {
    return this.#isAnswering || this.#waitingBytes > 0
  }

  get #isFresh(): boolean {
    return this.#socket.bytesRead === 0 && performance.now() - this.#openedAt < FIRST_REQUEST_MILLIS
  }

  readonly #onData = (bytes: Buffer): void => {
    if (this.#isAnswering || this.#waitingBytes + bytes.length < this.#neededBytes) {
      this.#waiting.push(bytes)
      this.#keep(bytes.length)
      // Stop reading, so that a client cannot fill the memory by pipelining requests.
      if (this.#isAnswering && this.#waitingBytes > MAX_SENT_AHEAD_BYTES) {
        endWaits(this.#socket)
        this.#socket.pause()
      }
    } else this.#read(this.#withWaiting(bytes))
  }

  #withWaiting(bytes: Buffer): Buffer {
    if (this.#waitingBytes === 0) return bytes
    clearTimeout(this.#headTimer)
    const all = Buffer.concat([...this.#waiting, bytes])
    this.#waiting = []
    this.#keep(-this.#waitingBytes)
    this.#neededBytes = 0
    return all
  }

  /** Handles the request at the start of `bytes`. Requests for another node go to Node's server. */
  #read(bytes: Buffer): void {
    const isServedHere = this.#rules.forwarding?.cluster.leads ?? true
    const request = isServedHere ? this.#heads.read(bytes) : undefined
    const end = request === undefined ? 0 : request.headBytes + request.bodyBytes
    // Node's server processes pipelined requests concurrently, which is better for clients that pipeline.
    if (request === undefined || end > LONGEST_PLAIN_REQUEST || bytes.length > end) {
      this.#handOver(bytes)
      return
    }
    if (bytes.length < end) {
      this.#waitForRest(bytes, end)
      return
    }
    this.#isAnswering = true
    void this.#serve(request, bytes.subarray(request.headBytes))
  }

  #waitForRest(bytes: Buffer, neededBytes: number): void {
    // At the limit on received bytes, Node's server refuses the body.
    if (!this.#rules.limiter.received.hasRoomFor(neededBytes)) {
      this.#handOver(bytes)
      return
    }
    this.#waiting = [bytes]
    this.#keep(bytes.length)
    this.#neededBytes = neededBytes
    const giveUp = () => this.#handOver(this.#withWaiting(NO_BYTES))
    this.#headTimer = setTimeout(giveUp, this.#rules.headTimeoutMillis)
  }

  /** Counts buffered bytes against the limit on received bytes. */
  #keep(bytes: number): void {
    this.#waitingBytes += bytes
    this.#rules.limiter.received.keep(bytes)
  }

  async #serve(request: FastRequest, body: Buffer): Promise<void> {
    const { method, url, head, serve, counts, urgency } = request
    const { limiter, forwarding } = this.#rules
    const began = performance.now()
    this.#isAnswered = false
    this.#moreHeaders = NO_HEADERS
    limiter.received.keep(body.length)
    const answered = forwarding?.cluster.countRequest()
    try {
      if (forwarding !== null && request.admission !== undefined) {
        const { headers, refusal } = forwarding.admitFast(request, body, this.#socket)
        this.#moreHeaders = headers
        if (refusal !== undefined) throw new RequestProblem(refusal.code, refusal.detail, refusal.options)
      }
      if (!limiter.isOpen) limiter.check(urgency, head.headers, this.#socket)
      const exchange = { head, socket: this.#socket, answer: this.#answer }
      const { waited } = await serve(exchange, method === 'GET' ? undefined : parseJsonBytes(body))
      if (this.#isAnswered) {
        const millis = performance.now() - began
        counts.answered(200, waited ? null : millis)
        this.#log(request, 200, millis)
      }
    } catch (error) {
      if (error instanceof NotServed) {
        this.#send(notServedText(error, this.#rules))
        return
      }
      const problem = this.#rules.problemOf(error, { method, url })
      this.#send(problemText(problem, this.#moreHeaders, this.#rules))
      if (this.#isAnswered) {
        const { status } = errorCodes[problem.code]
        const millis = performance.now() - began
        counts.answered(status, millis)
        this.#log(request, status, millis)
      }
    } finally {
      answered?.()
      limiter.received.keep(-body.length)
      this.#idleSince = performance.now()
    }
  }

  #log({ method, url, head }: FastRequest, status: number, millis: number): void {
    const { headers } = head
    this.#rules.logAnswer?.({ method, url, headers, socket: this.#socket }, status, millis)
  }

  readonly #answer: Exchange['answer'] = (body, headers, lost) => {
    if (lost === null || !hasHungUp(this.#socket))
      this.#send(answerText(body, [...headers, ...this.#moreHeaders], this.#rules))
    else {
      lost()
      this.#socket.destroySoon()
    }
  }

  #send({ text, encoding }: AnswerText): void {
    if (!this.#socket.writable) return
    this.#isAnswered = true
    const isFlushed = this.#socket.write(text, encoding)
    // The client has closed its side: this is the last response.
    if (this.#rules.handOff.isDraining || this.#socket.readableEnded) this.#socket.end()
    // Continue with the next request once this response is flushed.
    else if (isFlushed && this.#waitingBytes === 0) this.#isAnswering = false
    else if (isFlushed) process.nextTick(this.#goOn)
  }

  readonly #goOn = (): void => {
    if (this.#socket.readableEnded) {
      this.#socket.end()
      return
    }
    this.#isAnswering = false
    if (this.#socket.isPaused()) {
      allowWaits(this.#socket)
      this.#socket.resume()
    }
    if (this.#waitingBytes > 0) this.#read(this.#withWaiting(NO_BYTES))
  }

  readonly #onDrain = (): void => {
    if (this.#isAnswering && !this.#socket.writableEnded) this.#goOn()
  }

  readonly #onIdle = (): void => {
    if (this.#idleLeftMillis > 0) this.#idleTimer = setTimeout(this.#onIdle, this.#idleLeftMillis)
    // Timers run before pending reads: a request that has already arrived keeps the connection open.
    else this.#idleCheck = setImmediate(this.#closeIfStillIdle)
  }

  readonly #closeIfStillIdle = (): void => {
    if (this.#idleLeftMillis > 0) this.#onIdle()
    else this.close()
  }

  get #idleLeftMillis(): number {
    const idleMillis = this.#isBusy ? 0 : performance.now() - this.#idleSince
    return this.#rules.keepAliveMillis - idleMillis
  }

  readonly #onEnd = (): void => {
    if (this.#neededBytes > 0) answerClientError(new Error('the request has no end'), this.#socket)
    else if (!this.#isAnswering) this.#socket.end()
  }

  readonly #onError = (): void => {
    this.close()
  }

  readonly #onClose = (): void => {
    clearTimeout(this.#headTimer)
    this.#keep(-this.#waitingBytes)
    this.#stopIdleTimer()
    this.#rules.left()
  }

  #stopIdleTimer(): void {
    clearTimeout(this.#idleTimer)
    clearImmediate(this.#idleCheck)
  }

  #handOver(bytes: Buffer): void {
    const isBulk = bytes.length > BULK_BYTES
    this.#isAnswering = isBulk
    if (isBulk && this.#rules.slicer.waitingBeside(this.#socket) >= MOST_BULK_WAITING) {
      this.#socket.off('data', this.#onData)
      this.#rules.limiter.connections.refuse(this.#socket, 'overload', TOO_MUCH_BULK)
      return
    }
    this.#socket.pause()
    this.#socket.unshift(bytes)
    if (!isBulk) {
      this.#leave()
      return
    }
    this.#rules.slicer.add(this.#socket, () => {
      this.#leave()
      this.#socket.read()
      return false
    })
  }

  #leave(): void {
    const socket = this.#socket
    socket.off('data', this.#onData).off('drain', this.#onDrain)
    socket.off('error', this.#onError).off('end', this.#onEnd).off('close', this.#onClose)
    this.#stopIdleTimer()
    this.#rules.left()
    this.#rules.handOver()
    process.nextTick(() => socket.resume())
  }
}

const NO_BYTES = Buffer.alloc(0)
const NO_HEADERS: AnswerHeaders = []

/** What decides whether the connection stays open after a response. */
type Staying = Pick<FastPathRules, 'isSecure' | 'keepAliveMillis' | 'handOff'>

/** A complete response, ready to be written to the socket. */
interface AnswerText {
  readonly text: string
  readonly encoding: 'latin1' | 'utf8'
}

const okHead = (isSecure: boolean) => `HTTP/1.1 200 OK\r\n${fieldLines(commonHeaders(isSecure))}`
const OK_HEAD = okHead(false)
const OK_HEAD_OVER_TLS = okHead(true)

function answerText(body: string, headers: AnswerHeaders, staying: Staying): AnswerText {
  const bytes = Buffer.byteLength(body)
  return {
    text: `${staying.isSecure ? OK_HEAD_OVER_TLS : OK_HEAD}${fieldLines(headers)}${lastLines(bytes, staying)}${body}`,
    // ASCII has the same bytes in both encodings; Latin-1 is copied without conversion.
    encoding: bytes === body.length ? 'latin1' : 'utf8',
  }
}

function problemText(problem: Problem, more: AnswerHeaders, staying: Staying): AnswerText {
  const { status, headers, body } = writtenProblem(problem)
  const all = [...Object.entries({ ...securityHeaders(staying.isSecure), ...headers }).flat(), ...more]
  const head = `HTTP/1.1 ${status} ${statusWords[status]}\r\n${fieldLines(all)}`
  return { text: `${head}${lastLines(body.length, staying)}${body}`, encoding: 'utf8' }
}

function notServedText({ refusal }: NotServed, staying: Staying): AnswerText {
  const head = `HTTP/1.1 ${REFUSED_STATUS} Misdirected Request\r\n${fieldLines([REFUSED_HEADER, refusal])}`
  return { text: `${head}${lastLines(0, staying)}`, encoding: 'latin1' }
}

function fieldLines(headers: AnswerHeaders): string {
  let lines = ''
  for (let at = 0; at < headers.length; at += 2) lines += `${headers[at]}: ${headers[at + 1]}\r\n`
  return lines
}

function lastLines(contentLength: number, { handOff, keepAliveMillis }: Staying): string {
  const connection = handOff.isDraining
    ? 'close'
    : `keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMillis / 1000)}`
  return `content-length: ${contentLength}\r\nDate: ${dateNow()}\r\nConnection: ${connection}\r\n\r\n`
}

let formatted = { second: Number.NaN, text: '' }

/** The Date header, formatted once per second. */
function dateNow(): string {
  const second = Math.floor(Date.now() / 1000)
  if (formatted.second !== second) formatted = { second, text: new Date(second * 1000).toUTCString() }
  return formatted.text
}
