import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { soleViolation } from '@baton/protocol'
import { brokenContract, RequestProblem } from '../answers/problems.ts'
import type { ClientLimiter } from '../limits/limiter.ts'
import type { BodyHold } from '../limits/received-bytes.ts'
import { whenClosed } from '../requests/disconnects.ts'
import type { TimeSlicer } from '../requests/time-slicer.ts'
import { JsonShape, MAX_DEPTH, type ShapeFault, type ShapeLimits } from './json-shape.ts'

const holds = new WeakMap<IncomingMessage, BodyHold>()

/** Keeps the bytes of a request counted until `work` is done, even if its connection closes. */
export async function whileHeld<Result>(
  request: IncomingMessage,
  work: () => Promise<Result>,
): Promise<Result> {
  const hold = holds.get(request)
  hold?.retain()
  try {
    return await work()
  } finally {
    hold?.release()
  }
}

const TOO_MUCH_RECEIVED =
  'this node is receiving more data than its limit; send the request again, if possible in smaller bodies'

/** The limits that are checked while a body arrives. */
export interface ArrivalRules {
  readonly limitBytes: number
  readonly shape: ShapeLimits
  /** Other bodies are urgent, and may use reserved memory. */
  readonly isCallBack: boolean
  readonly isCompressed: boolean
  readonly limiter: Pick<ClientLimiter, 'received' | 'reached'>
  /** Checks the shape of large bodies. */
  readonly slicer: TimeSlicer
}

/** A complete body, and the positions at which a large array can be cut into pieces. */
export interface ArrivedBody {
  readonly bytes: Buffer
  readonly cuts: readonly number[]
}

const NO_BYTES = Buffer.alloc(0)
/** More is checked in slices. Until it is complete, a body costs only memory: thousands may never end. */
const CHECKED_AT_ONCE_BYTES = 64 * 1024
const STEP_BYTES = 8 * 1024
const LEAST_BUFFER_BYTES = 1024
/** A body is copied a few times while it grows, and little of its buffer stays unused. */
const GROWTH = 1.5

/**
 * Reads the body of a request, decompressed if necessary, and refuses it as soon as it exceeds a limit. So a
 * body that is too large, has too many values or is nested too deeply is never completely in memory.
 */
export class ArrivingBody {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse | undefined
  readonly #payload: Readable
  readonly #rules: ArrivalRules
  readonly #arrived: (body: ArrivedBody) => void
  readonly #refused: (error: Error) => void
  readonly #shape: JsonShape
  readonly #hold: BodyHold
  #source: Readable
  /** Begins with the body; what follows its bytes is not used yet. */
  #received: Buffer = NO_BYTES
  #bytes = 0
  #checkedBytes = 0
  #sentBytes = 0
  #isOver = false
  #isChecking = false
  #hasEnded = false
  #isReleased = false
  #unwatch: () => void = () => undefined

  constructor(
    request: IncomingMessage,
    response: ServerResponse | undefined,
    payload: Readable,
    rules: ArrivalRules,
    arrived: (body: ArrivedBody) => void,
    refused: (error: Error) => void,
  ) {
    this.#request = request
    this.#response = response
    this.#payload = payload
    this.#source = payload
    this.#rules = rules
    this.#arrived = arrived
    this.#refused = refused
    this.#shape = new JsonShape(rules.shape)
    this.#hold = rules.limiter.received.hold(!rules.isCallBack, request.socket.remoteAddress, () =>
      this.#fail(new RequestProblem('overloaded', TOO_MUCH_RECEIVED)),
    )
  }

  read(): void {
    const { isCompressed } = this.#rules
    holds.set(this.#request, this.#hold)
    // Whichever closes first: some responses are never sent, and a connection outlives many.
    this.#response?.once('close', this.#release)
    this.#unwatch = whenClosed(this.#request.socket, this.#release)
    if (Number(this.#request.headers['content-length'] ?? 0) > this.#rules.limitBytes) {
      this.#failAsTooLarge()
      return
    }
    if (isCompressed) this.#source = this.#expanded()
    this.#source.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError)
    // pipe() does not forward errors of its source.
    if (isCompressed) this.#payload.on('error', this.#onError)
  }

  #expanded(): Readable {
    this.#payload.on('data', (chunk: Buffer) => {
      this.#sentBytes += chunk.length
    })
    return this.#payload.pipe(createGunzip())
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#isOver) return
    this.#bytes += chunk.length
    if (Math.max(this.#bytes, this.#sentBytes) > this.#rules.limitBytes) {
      this.#failAsTooLarge()
      return
    }
    if (!this.#hold.add(chunk.length)) {
      this.#fail(new RequestProblem('overloaded', TOO_MUCH_RECEIVED))
      return
    }
    this.#keep(chunk)
    if (this.#bytes > CHECKED_AT_ONCE_BYTES && !this.#isChecking) this.#checkInSteps()
  }

  /** Copies all chunks but the first: even one of a byte keeps a whole buffer in memory. */
  #keep(chunk: Buffer): void {
    const before = this.#bytes - chunk.length
    if (before === 0) {
      this.#received = chunk
      return
    }
    if (this.#bytes > this.#received.length) {
      const capacity = Math.max(LEAST_BUFFER_BYTES, Math.ceil(GROWTH * this.#bytes))
      const larger = Buffer.allocUnsafeSlow(capacity)
      this.#received.copy(larger, 0, 0, before)
      this.#received = larger
    }
    chunk.copy(this.#received, before)
  }

  #check(): void {
    const end = Math.min(this.#bytes, this.#checkedBytes + STEP_BYTES)
    const bytes = this.#received.subarray(this.#checkedBytes, end)
    this.#checkedBytes = end
    const fault = this.#shape.take(bytes)
    if (fault === undefined) return
    const { limiter, isCallBack } = this.#rules
    limiter.reached.note(isCallBack && fault === 'elements' ? 'call-back-partitions' : 'body-shape')
    this.#fail(shapeProblem(fault, this.#shape.oversized, this.#rules))
  }

  /** Nothing more is read until everything that has arrived is checked. */
  #checkInSteps(): void {
    this.#isChecking = true
    this.#source.pause()
    this.#rules.slicer.add(this.#request.socket, () => {
      if (this.#isOver) return false
      this.#check()
      if (this.#checkedBytes < this.#bytes) return true
      this.#isChecking = false
      if (this.#hasEnded) this.#complete()
      else this.#source.resume()
      return false
    })
  }

  /** A stream that is paused in its last chunk ends all the same. */
  readonly #onEnd = (): void => {
    this.#hasEnded = true
    if (!this.#isChecking) this.#complete()
  }

  #complete(): void {
    if (this.#isOver) return
    const announced = this.#request.headers['content-length']
    const sent = this.#source === this.#payload ? this.#bytes : this.#sentBytes
    if (announced !== undefined && Number(announced) !== sent) {
      this.#fail(
        new RequestProblem('bad_request', 'the length of the body does not match its Content-Length'),
      )
      return
    }
    while (!this.#isOver && this.#checkedBytes < this.#bytes) this.#check()
    if (this.#isOver) return
    this.#isOver = true
    this.#hold.arrived()
    this.#arrived({ bytes: this.#received.subarray(0, this.#bytes), cuts: this.#shape.cuts })
  }

  readonly #onError = (error: Error): void => {
    if ((error as { code?: string }).code?.startsWith('Z_') === true) {
      this.#fail(
        new RequestProblem('body_not_json', 'the body is declared as gzip but cannot be decompressed'),
      )
    } else this.#fail(Object.assign(error, { statusCode: 400 }))
  }

  readonly #release = (): void => {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#response?.off('close', this.#release)
    this.#unwatch()
    this.#hold.release()
  }

  #failAsTooLarge(): void {
    this.#fail(new RequestProblem('body_too_large', tooLarge(this.#rules)))
  }

  /** Reads and discards the rest of the body, so that the client gets to read the response. */
  #fail(error: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#received = NO_BYTES
    this.#release()
    if (this.#source !== this.#payload) {
      this.#payload.unpipe()
      this.#source.destroy()
    }
    this.#payload.resume()
    this.#refused(error)
  }
}

/** Only the limit of call-backs can be configured, so only that message names the setting. */
function tooLarge({ limitBytes, isCallBack }: ArrivalRules): string {
  const limit = `${Number((limitBytes / 2 ** 20).toFixed(3))} MiB`
  return isCallBack
    ? `the body is larger than ${limit}, the limit of a call-back; send several arrays, or raise the limit with --body-limit-mb`
    : `the body is larger than ${limit}, the limit of this route`
}

const inThousands = (count: number) => count.toLocaleString('en-US')

function tooManyElements(limit: number, isCallBack: boolean): string {
  return isCallBack
    ? `the array has more than ${inThousands(limit)} descriptors, the limit of a call-back; send several arrays, or raise the limit with --max-call-back-partitions`
    : `the array has more than ${inThousands(limit)} elements; send several arrays`
}

const tooManyValues = (limit: number): string =>
  `the body has more than ${inThousands(limit)} values; send several arrays`

/** The same body in several smaller ones would be accepted, unless it is too deep or one element too large. */
function shapeProblem(
  fault: ShapeFault,
  oversized: number | undefined,
  { shape: { elements, values, elementBytes }, isCallBack }: ArrivalRules,
): RequestProblem {
  switch (fault) {
    case 'elements':
      return new RequestProblem('body_too_large', tooManyElements(elements, isCallBack))
    case 'values':
      return new RequestProblem('body_too_large', tooManyValues(values))
    case 'depth':
      return brokenContract(
        'the body was rejected before parsing',
        soleViolation('', `the body is nested more than ${MAX_DEPTH} levels deep`),
      )
    case 'element-size':
      return brokenContract(
        'the body was rejected before parsing',
        soleViolation(`/${oversized}`, `an element can have at most ${elementBytes / 1024} KiB`),
      )
  }
}
