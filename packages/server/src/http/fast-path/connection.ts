import type { Socket } from 'node:net'
import { errorCodes } from '@baton/protocol'
import { answerClientError, statusWords } from '../answers/client-errors.ts'
import type { Refuse } from '../answers/error-answers.ts'
import { type UnwrittenProblem, writtenProblem } from '../answers/problems.ts'
import { securityHeaders } from '../answers/security-headers.ts'
import type { AdmissionBudget } from '../budget/budget.ts'
import type { KeyOwner } from '../requests/callers.ts'
import { type AnswerHeaders, commonHeaders, type Exchange } from '../requests/exchange.ts'
import { hasHungUp } from '../requests/hang-up.ts'
import { parsedBody } from '../requests/json-body.ts'
import type { LogAnswer } from '../requests/request-log.ts'
import { allowWaits, endWaits } from '../requests/sent-ahead.ts'
import { type FastRequest, HeadCache, type RouteOf } from './head-cache.ts'

/** What becomes of the connection after an answer. */
interface Staying {
  /** It is over TLS. */
  readonly isSecure: boolean
  readonly keepAliveMillis: number
  isLast(): boolean
}

/** The text of an answer as it goes to the socket. */
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
    // ASCII is the same in both; as Latin-1 it is copied and not converted.
    encoding: bytes === body.length ? 'latin1' : 'utf8',
  }
}

function problemText(refusal: UnwrittenProblem, staying: Staying): AnswerText {
  const { status, headers, body } = writtenProblem(refusal)
  const head = `HTTP/1.1 ${status} ${statusWords[status]}\r\n${fieldLines(Object.entries({ ...securityHeaders(staying.isSecure), ...headers }).flat())}`
  return { text: `${head}${lastLines(body.length, staying)}${body}`, encoding: 'utf8' }
}

function fieldLines(headers: AnswerHeaders): string {
  let lines = ''
  for (let at = 0; at < headers.length; at += 2) lines += `${headers[at]}: ${headers[at + 1]}\r\n`
  return lines
}

function lastLines(contentLength: number, { isLast, keepAliveMillis }: Staying): string {
  const connection = isLast()
    ? 'close'
    : `keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMillis / 1000)}`
  return `content-length: ${contentLength}\r\nDate: ${dateNow()}\r\nConnection: ${connection}\r\n\r\n`
}

let formatted = { second: Number.NaN, text: '' }

/** Formatted once a second. */
function dateNow(): string {
  const second = Math.floor(Date.now() / 1000)
  if (formatted.second !== second) formatted = { second, text: new Date(second * 1000).toUTCString() }
  return formatted.text
}

/** A thousand settlements with reasons; what is larger is not where a request's own cost counts. */
const LONGEST_PLAIN_REQUEST = 256 * 1024
/** What is read ahead of an answer. What follows it is left in the socket. */
const MAX_SENT_AHEAD_BYTES = 16 * 1024
/** A connection that has just come is not idle: its first request may be on the way, or wait to be read. */
const FIRST_REQUEST_MILLIS = 1000

interface FastPathRules extends Staying {
  readonly routeOf: RouteOf
  readonly keyOwner: KeyOwner
  readonly refuse: Refuse
  readonly budget: AdmissionBudget
  readonly logAnswer: LogAnswer | null
  /** A body may come after its head, but those who keep us waiting for so long are left to Node's timers. */
  readonly headTimeoutMillis: number
  /** Gives the socket to Node's HTTP server. */
  handOver(): void
  /** The connection is closed, or is no longer ours. */
  left(): void
}

/** One connection, one request after the other, until a request comes that is for others to serve. */
export class FastConnection {
  readonly #socket: Socket
  readonly #rules: FastPathRules
  readonly #heads: HeadCache
  readonly #openedAt = performance.now()
  /** Not the socket's own timer: that starts anew with all that is read and written, which took 2 % of each request. */
  #idleTimer: NodeJS.Timeout
  #idleCheck: NodeJS.Immediate | undefined
  #idleSince = this.#openedAt
  #isAnswering = false
  /** Something was sent to whoever made the request at hand. */
  #isAnswered = false
  /** The beginning of a request, or what was sent ahead while another is answered. */
  #waiting: Buffer[] = []
  #waitingBytes = 0
  /** How many bytes make it worth looking at what waits. */
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

  /** Admits each head again. */
  forgetHeads(): void {
    this.#heads.forget()
  }

  closeIfIdle(): void {
    if (!this.#isBusy && !this.#isFresh) this.close()
  }

  /** Also while the rest of a request is to come. */
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
      // Who sends ahead without end is not read ahead without end.
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

  /** `bytes` begin with a request. */
  #read(bytes: Buffer): void {
    const request = this.#heads.read(bytes)
    const end = request === undefined ? 0 : request.headBytes + request.bodyBytes
    // Node's server works on several requests of a connection at once; whoever sends ahead is better off there.
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
    // Where bodies are refused for lack of room, Node's server does that.
    if (!this.#rules.budget.received.hasRoomFor(neededBytes)) {
      this.#handOver(bytes)
      return
    }
    this.#waiting = [bytes]
    this.#keep(bytes.length)
    this.#neededBytes = neededBytes
    const giveUp = () => this.#handOver(this.#withWaiting(NO_BYTES))
    this.#headTimer = setTimeout(giveUp, this.#rules.headTimeoutMillis)
  }

  /** What waits counts as received. */
  #keep(bytes: number): void {
    this.#waitingBytes += bytes
    this.#rules.budget.received.keep(bytes)
  }

  async #serve(request: FastRequest, body: Buffer): Promise<void> {
    const { method, url, asked, serve, counts, urgency } = request
    const { budget } = this.#rules
    const began = performance.now()
    this.#isAnswered = false
    budget.received.keep(body.length)
    try {
      if (!budget.isOpen) budget.check(urgency, asked.headers, this.#socket)
      const exchange = { asked, socket: this.#socket, answer: this.#answer }
      const { waited } = await serve(exchange, method === 'GET' ? undefined : parsedBody(body))
      if (this.#isAnswered) {
        const millis = performance.now() - began
        counts.answered(200, waited ? null : millis)
        this.#log(request, 200, millis)
      }
    } catch (error) {
      const refusal = this.#rules.refuse(error, { method, url })
      this.#send(problemText(refusal, this.#rules))
      if (this.#isAnswered) {
        const { status } = errorCodes[refusal.code]
        const millis = performance.now() - began
        counts.answered(status, millis)
        this.#log(request, status, millis)
      }
    } finally {
      budget.received.keep(-body.length)
      this.#idleSince = performance.now()
    }
  }

  #log({ method, url, asked }: FastRequest, status: number, millis: number): void {
    const { headers } = asked
    this.#rules.logAnswer?.({ method, url, headers, socket: this.#socket }, status, millis)
  }

  readonly #answer: Exchange['answer'] = (body, headers, lost) => {
    if (lost === null || !hasHungUp(this.#socket)) this.#send(answerText(body, headers, this.#rules))
    else {
      lost()
      this.#socket.destroySoon()
    }
  }

  #send({ text, encoding }: AnswerText): void {
    if (!this.#socket.writable) return
    this.#isAnswered = true
    const isRead = this.#socket.write(text, encoding)
    // Whoever has stopped sending gets this answer and no other.
    if (this.#rules.isLast() || this.#socket.readableEnded) this.#socket.end()
    // The next request waits until this answer is on its way.
    else if (isRead && this.#waitingBytes === 0) this.#isAnswering = false
    else if (isRead) process.nextTick(this.#goOn)
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
    // Timers come before what has arrived is read: a request that is here already keeps the connection.
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
    const socket = this.#socket
    socket.off('data', this.#onData).off('drain', this.#onDrain)
    socket.off('error', this.#onError).off('end', this.#onEnd).off('close', this.#onClose)
    this.#stopIdleTimer()
    socket.pause()
    socket.unshift(bytes)
    this.#rules.left()
    this.#rules.handOver()
    process.nextTick(() => socket.resume())
  }
}

const NO_BYTES = Buffer.alloc(0)
