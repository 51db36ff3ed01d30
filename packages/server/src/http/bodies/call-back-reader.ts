import { extname } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import {
  type CallBackCheck,
  type CalledBackPartition,
  type CheckFailure,
  checkCallBack,
  type OptionalField,
  optionalFields,
} from '@baton/protocol'
import { RequestProblem } from '../answers/problems.ts'
import { UnparsedBody } from './json-bytes.ts'

/**
 * Partitions in messages of the reader thread: columns of numbers, which are transferred without copying.
 * Receiving objects instead would block the event loop (bench scenario call-back-stall).
 */
interface CalledBackColumns {
  /** Level, index and record count of each partition in turn. */
  readonly numbers: Float64Array<ArrayBuffer>
  /** The index into `tableNames` of each partition. */
  readonly tables: Uint32Array<ArrayBuffer>
  readonly tableNames: readonly string[]
  /** By position of the partition; only for partitions that have one. */
  readonly spellings: ReadonlyMap<number, string>
  readonly optional: readonly (readonly [at: number, field: OptionalField, text: string])[]
}

const NUMBERS = 3

export function columnsOf(partitions: readonly CalledBackPartition[]): CalledBackColumns {
  const numbers = new Float64Array(partitions.length * NUMBERS)
  const tables = new Uint32Array(partitions.length)
  const places = new Map<string, number>()
  const spellings = new Map<number, string>()
  const optional: [number, OptionalField, string][] = []
  let at = 0
  for (const partition of partitions) {
    const { level, index, recordCount, computeTableName, spelling } = partition
    numbers[at * NUMBERS] = level
    numbers[at * NUMBERS + 1] = index
    numbers[at * NUMBERS + 2] = recordCount
    const place = places.get(computeTableName) ?? places.size
    places.set(computeTableName, place)
    tables[at] = place
    if (spelling !== null) spellings.set(at, spelling)
    for (const field of optionalFields) {
      const text = partition[field]
      if (text != null) optional.push([at, field, text])
    }
    at += 1
  }
  return { numbers, tables, tableNames: [...places.keys()], spellings, optional }
}

/** The buffers to transfer with a message. */
export function ownedBy({ numbers, tables }: CalledBackColumns): ArrayBuffer[] {
  return [numbers.buffer, tables.buffer]
}

export function addPartitions(
  { numbers, tables, tableNames, spellings, optional }: CalledBackColumns,
  to: CalledBackPartition[],
): void {
  const first = to.length
  for (let at = 0; at < tables.length; at += 1) {
    to.push({
      level: numbers[at * NUMBERS] as number,
      index: numbers[at * NUMBERS + 1] as number,
      recordCount: numbers[at * NUMBERS + 2] as number,
      computeTableName: tableNames[tables[at] as number] as string,
      spelling: spellings.get(at) ?? null,
    })
  }
  for (const [at, field, text] of optional) (to[first + at] as CalledBackPartition)[field] = text
}

/**
 * Node delivers many messages in one iteration of the event loop. So a piece becomes partitions in an
 * iteration that has nothing else of the call-back to do.
 */
async function partitionsOf(pieces: readonly CalledBackColumns[]): Promise<CalledBackPartition[]> {
  const partitions: CalledBackPartition[] = []
  for (const piece of pieces) {
    addPartitions(piece, partitions)
    await setImmediate()
  }
  return partitions
}

interface Reading {
  readonly pieces: CalledBackColumns[]
  readonly resolve: (checked: CallBackCheck) => void
  readonly reject: (error: Error) => void
}

/** How long an idle thread is kept. It does not release the memory of what it has parsed until it ends. */
const IDLE_MILLIS = 10_000
/** A larger one delays garbage collections, and the thread takes more memory. */
const YOUNG_HEAP_MB = 32

type CheckOptions = ReadRequest['options']

/** Checks the body of a call-back. A body that is still in bytes is parsed and checked on a thread. */
export class CallBackReader {
  readonly #options: CheckOptions
  readonly #idleMillis: number
  readonly #readings = new Map<number, Reading>()
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined
  #lastId = 0

  constructor(options: CheckOptions, idleMillis = IDLE_MILLIS) {
    this.#options = options
    this.#idleMillis = idleMillis
  }

  get hasThread(): boolean {
    return this.#worker !== undefined
  }

  async read(body: unknown): Promise<CallBackCheck> {
    return body instanceof UnparsedBody ? this.#readOnThread(body) : checkCallBack(body, this.#options)
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle)
    await this.#worker?.terminate()
  }

  #readOnThread({ chunks }: UnparsedBody): Promise<CallBackCheck> {
    clearTimeout(this.#idle)
    return new Promise((resolve, reject) => {
      this.#lastId += 1
      this.#readings.set(this.#lastId, { pieces: [], resolve, reject })
      const body = chunks.map(wholeBufferOf)
      const request: ReadRequest = { id: this.#lastId, body, options: this.#options }
      this.#thread().postMessage(request, body)
    })
  }

  /** Starts the thread with the first large body; most services never receive one. */
  #thread(): Worker {
    if (this.#worker !== undefined) return this.#worker
    const entry = new URL(`./call-back-reader-thread${extname(import.meta.url)}`, import.meta.url)
    const worker = new Worker(entry, {
      name: 'baton-reader',
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_HEAP_MB },
    })
    worker.unref()
    worker.on('message', (reply: ReadingReply) => this.#receive(reply))
    worker.on('error', (error) => this.#giveUp(worker, error))
    worker.on('exit', () => this.#giveUp(worker, new Error('the reader of call-backs has ended')))
    this.#worker = worker
    return worker
  }

  #receive(reply: ReadingReply): void {
    const reading = this.#readings.get(reply.id)
    if (reading === undefined) return
    if (reply.kind === 'piece') {
      reading.pieces.push(reply.columns)
      return
    }
    this.#readings.delete(reply.id)
    if (this.#readings.size === 0) this.#idle = setTimeout(this.#endThread, this.#idleMillis).unref()
    switch (reply.kind) {
      case 'read': {
        const { taskId, recordTotal } = reply
        partitionsOf(reading.pieces).then(
          (partitions) => reading.resolve({ ok: true, callBack: { taskId, recordTotal, partitions } }),
          reading.reject,
        )
        return
      }
      case 'violations':
        reading.resolve(reply.failure)
        return
      case 'not-json':
        reading.reject(new RequestProblem('body_not_json', reply.detail))
        return
      case 'failed':
        reading.reject(new Error(reply.detail))
    }
  }

  readonly #endThread = (): void => {
    const worker = this.#worker
    this.#worker = undefined
    void worker?.terminate()
  }

  #giveUp(worker: Worker, error: Error): void {
    // A failed worker emits `exit` after `error`, when another may have replaced it already.
    if (this.#worker !== worker) return
    this.#worker = undefined
    for (const { reject } of this.#readings.values()) reject(error)
    this.#readings.clear()
  }
}

/** Returns a buffer that can be transferred to the thread. A view of a shared pool has to be copied first. */
function wholeBufferOf({ buffer, byteOffset, byteLength }: Buffer): ArrayBuffer {
  const isWhole = buffer instanceof ArrayBuffer && byteLength === buffer.byteLength
  return isWhole ? buffer : (buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer)
}

/**
 * The message to the thread that parses and checks large call-backs, off the event loop. It replies with the
 * partitions in pieces.
 */
export interface ReadRequest {
  readonly id: number
  readonly body: ArrayBuffer[]
  readonly options: NonNullable<Parameters<typeof checkCallBack>[1]>
}

export type ReadingReply =
  | { readonly id: number; readonly kind: 'piece'; readonly columns: CalledBackColumns }
  | { readonly id: number; readonly kind: 'read'; readonly taskId: string; readonly recordTotal: number }
  | { readonly id: number; readonly kind: 'violations'; readonly failure: CheckFailure }
  | { readonly id: number; readonly kind: 'not-json'; readonly detail: string }
  | { readonly id: number; readonly kind: 'failed'; readonly detail: string }
