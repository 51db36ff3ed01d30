import type { Socket } from 'node:net'
import { errorCodes } from '@baton/protocol'
import type { AdmissionBudget } from '../admission/budget.ts'
import { answerClientError } from '../answers/client-errors.ts'
import type { Refuse } from '../answers/error-answers.ts'
import type { Exchange } from '../requests/exchange.ts'
import { hasHungUp } from '../requests/hang-up.ts'
import { parsedBody } from '../requests/json-body.ts'
import type { KeyOwner } from '../requests/key-owner.ts'
import { allowWaits, endWaits } from '../requests/sent-ahead.ts'
import { type AnswerText, answerText, problemText, type Staying } from './express-answer.ts'
import { type ExpressRequest, KnownHeads, type RouteOf } from './known-heads.ts'

/** A thousand settlements with reasons; what is larger is not where a request's own cost counts. */
const LONGEST_PLAIN_REQUEST = 256 * 1024
/** What is read ahead of an answer. What follows it is left in the socket. */
const MAX_SENT_AHEAD_BYTES = 16 * 1024
/** A connection that has just come is not idle: its first request may be on the way, or wait to be read. */
const FIRST_REQUEST_MILLIS = 1000

export interface ExpressRules extends Staying {
  readonly routeOf: RouteOf
  readonly keyOwner: KeyOwner
  readonly refuse: Refuse
  readonly budget: AdmissionBudget
  /** A body may come after its head, but those who keep us waiting for so long are left to Node's timers. */
  readonly patienceMillis: number
  /** Gives the socket to Node's HTTP server. */
  handOver(): void
  /** The connection is closed, or is no longer ours. */
  left(): void
}

/** One connection, one request after the other, until a request comes that is for others to serve. */
export class ExpressConnection {
  readonly #socket: Socket
  readonly #rules: ExpressRules
  readonly #heads: KnownHeads
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
  #patience: NodeJS.Timeout | undefined

  constructor(socket: Socket, rules: ExpressRules) {
    this.#socket = socket
    this.#rules = rules
    this.#heads = new KnownHeads(rules.routeOf, rules.keyOwner)
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
    clearTimeout(this.#patience)
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
    this.#patience = setTimeout(giveUp, this.#rules.patienceMillis)
  }

  /** What waits counts as received. */
  #keep(bytes: number): void {
    this.#waitingBytes += bytes
    this.#rules.budget.received.keep(bytes)
  }

  async #serve(request: ExpressRequest, body: Buffer): Promise<void> {
    const { method, url, asked, serve, counts, urgency } = request
    const { budget } = this.#rules
    const began = performance.now()
    this.#isAnswered = false
    budget.received.keep(body.length)
    try {
      if (!budget.isOpen) budget.check(urgency, asked.headers, this.#socket)
      const exchange = { asked, socket: this.#socket, answer: this.#answer }
      const { waited } = await serve(exchange, method === 'GET' ? undefined : parsedBody(body))
      if (this.#isAnswered) counts.answered(200, waited ? null : performance.now() - began)
    } catch (error) {
      const refusal = this.#rules.refuse(error, { method, url })
      this.#send(problemText(refusal, this.#rules))
      if (this.#isAnswered) counts.answered(errorCodes[refusal.code].status, performance.now() - began)
    } finally {
      budget.received.keep(-body.length)
      this.#idleSince = performance.now()
    }
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
    clearTimeout(this.#patience)
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
