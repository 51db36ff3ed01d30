import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { RequestProblem } from '../answers/problems.ts'
import type { BodyHold, HoldBody } from '../limits/received-bytes.ts'
import { SharedListeners } from '../requests/disconnects.ts'
import type { TimeSlicer } from '../requests/time-slicer.ts'
import { JsonShape, type ShapeFault, type ShapeLimits } from './json-shape.ts'

const holds = new WeakMap<IncomingMessage, BodyHold>()

function rememberHold(request: IncomingMessage, hold: BodyHold): void {
  holds.set(request, hold)
}

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
  /** True for all routes except call-backs. Urgent bodies may use reserved memory. */
  readonly isUrgent: boolean
  readonly hold: HoldBody
  /** Checks the shape of large bodies. */
  readonly slicer: TimeSlicer
  tooLarge(): string
  shapeFault(fault: ShapeFault, oversized: number | undefined): RequestProblem
}

/** `cuts` are the positions at which a large array can be cut into pieces. */
type Done = (error: Error | null, bytes?: Buffer, cuts?: readonly number[]) => void

const closes = new SharedListeners('close')
/** More is checked in slices. Until it is complete, a body costs only memory: thousands may never end. */
const CHECKED_AT_ONCE_BYTES = 64 * 1024
const STEP_BYTES = 8 * 1024

/**
 * Reads the body of a request, decompressed if necessary, and refuses it as soon as it exceeds a limit. So a
 * body that is too large, has too many values or is nested too deeply is never completely in memory.
 */
export class ArrivingBody {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse | undefined
  readonly #payload: Readable
  readonly #rules: ArrivalRules
  readonly #done: Done
  readonly #shape: JsonShape
  readonly #hold: BodyHold
  #source: Readable
  readonly #received = new ReceivedPieces()
  #bytes = 0
  #checkedBytes = 0
  #sentBytes = 0
  #isOver = false
  #isChecking = false
  #hasEnded = false
  #isReleased = false

  constructor(
    request: IncomingMessage,
    response: ServerResponse | undefined,
    payload: Readable,
    rules: ArrivalRules,
    done: Done,
  ) {
    this.#request = request
    this.#response = response
    this.#payload = payload
    this.#source = payload
    this.#rules = rules
    this.#done = done
    this.#shape = new JsonShape(rules.shape)
    this.#hold = rules.hold(rules.isUrgent, request.socket.remoteAddress, () =>
      this.#fail(new RequestProblem('overloaded', TOO_MUCH_RECEIVED)),
    )
  }

  read(isCompressed: boolean): void {
    rememberHold(this.#request, this.#hold)
    // Whichever closes first: some responses are never sent, and a connection outlives many.
    this.#response?.once('close', this.#release)
    closes.add(this.#request.socket, this.#release)
    if (this.#announcedBytes > this.#rules.limitBytes) {
      this.#fail(new RequestProblem('body_too_large', this.#rules.tooLarge()))
      return
    }
    if (isCompressed) this.#source = this.#expanded()
    this.#source.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError)
    // pipe() does not forward errors of its source.
    if (isCompressed) this.#payload.on('error', this.#onError)
  }

  get #announcedBytes(): number {
    return Number(this.#request.headers['content-length'] ?? 0)
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
      this.#fail(new RequestProblem('body_too_large', this.#rules.tooLarge()))
      return
    }
    if (!this.#hold.add(chunk.length)) {
      this.#fail(new RequestProblem('overloaded', TOO_MUCH_RECEIVED))
      return
    }
    this.#received.add(chunk)
    if (this.#bytes > CHECKED_AT_ONCE_BYTES && !this.#isChecking) this.#checkInSteps()
  }

  #check(): void {
    const bytes = this.#received.next(STEP_BYTES)
    this.#checkedBytes += bytes.length
    const fault = this.#shape.take(bytes)
    if (fault !== undefined) this.#fail(this.#rules.shapeFault(fault, this.#shape.oversized))
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
    this.#done(null, this.#received.take(), this.#shape.cuts)
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
    closes.remove(this.#request.socket, this.#release)
    this.#hold.release()
  }

  /** Reads and discards the rest of the body, so that the client gets to read the response. */
  #fail(error: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#received.drop()
    this.#release()
    if (this.#source !== this.#payload) {
      this.#payload.unpipe()
      this.#source.destroy()
    }
    this.#payload.resume()
    this.#done(error)
  }
}

const LEAST_PIECE_BYTES = 1024
const LARGEST_PIECE_BYTES = 64 * 1024
/** A chunk of this size is kept as it is, if it is most of the buffer that it keeps in memory. */
const LARGE_CHUNK_BYTES = 4096

/** Small chunks are copied into larger pieces: even a chunk of one byte keeps a whole buffer in memory. */
class ReceivedPieces {
  #pieces: Buffer[] = []
  #bytes = 0
  /** How many bytes of the last piece are used. */
  #used = 0
  /** The place of what `next` returns: a piece, and a position in it. */
  #piece = 0
  #at = 0

  add(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#pieces.length === 0 || isKept(chunk)) {
      this.#push(chunk, chunk.length)
      return
    }
    for (let at = 0; at < chunk.length; ) {
      const last = this.#pieces.at(-1)
      if (last === undefined || this.#used === last.length) {
        // As large as all before it, so that little of it stays unused.
        const bytes = Math.max(
          LEAST_PIECE_BYTES,
          chunk.length - at,
          Math.min(LARGEST_PIECE_BYTES, this.#bytes),
        )
        this.#push(Buffer.allocUnsafeSlow(bytes), 0)
        continue
      }
      const copied = chunk.copy(last, this.#used, at)
      this.#used += copied
      at += copied
    }
  }

  /** The next bytes that were not returned before, at most `most`. Must not be called when there are none. */
  next(most: number): Buffer {
    let piece = this.#pieces[this.#piece]
    while (piece !== undefined && this.#at === piece.length) {
      this.#piece += 1
      this.#at = 0
      piece = this.#pieces[this.#piece]
    }
    if (piece === undefined) throw new Error('all bytes of the body were returned before')
    const end = this.#piece === this.#pieces.length - 1 ? this.#used : piece.length
    const bytes = piece.subarray(this.#at, Math.min(end, this.#at + most))
    this.#at += bytes.length
    return bytes
  }

  /** All bytes; nothing is kept. */
  take(): Buffer {
    const pieces = this.#pieces
    const bytes = this.#bytes
    this.drop()
    const [first] = pieces
    // `concat` fills missing bytes with zeros, and cuts off the unused end of the last piece.
    return pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces, bytes)
  }

  drop(): void {
    this.#pieces = []
    this.#bytes = 0
  }

  #push(piece: Buffer, used: number): void {
    const last = this.#pieces.at(-1)
    if (last !== undefined && this.#used < last.length)
      this.#pieces[this.#pieces.length - 1] = last.subarray(0, this.#used)
    this.#pieces.push(piece)
    this.#used = used
  }
}

const isKept = ({ length, buffer }: Buffer): boolean =>
  length >= LARGE_CHUNK_BYTES && 2 * length >= buffer.byteLength
