import { createHash, createHmac, hash, timingSafeEqual } from 'node:crypto'
import { setImmediate as nextIteration } from 'node:timers/promises'
import type { CalledBackPartition } from '@baton/protocol'
import type { Stopwatch } from '../handoff/clock.ts'
import {
  type HandOffBatch,
  isLargeCallBack,
  type ReadiedOf,
  type Store,
  StoreUnavailable,
} from '../handoff/store.ts'
import type { LeaderRow } from '../handoff/stored.ts'

/** The store's methods that followers forward to the leader. Sweep and maintenance run on the leader only. */
export const carriedVerbs = [
  'handOff',
  'control',
  'releaseInstance',
  'task',
  'tasks',
  'partitions',
  'throughput',
  'changes',
  'subscriptions',
  'recordHeartbeats',
  'instance',
  'instances',
  'activeInstances',
  'probe',
  'audit',
] as const satisfies readonly (keyof Store)[]
export type CarriedVerb = (typeof carriedVerbs)[number]

export const isCarried = (verb: string): verb is CarriedVerb => carriedVerbs.includes(verb as CarriedVerb)

/** The stream that a leader keeps open to each follower. */
export const HINTS = 'hints'

/** A line of that stream. An empty line is a heartbeat. */
export type StreamLine =
  | { readonly hello: { readonly term: string; readonly mac: string } }
  /** The number of partitions that became ready. */
  | { readonly readied: number; readonly readiedOf?: readonly ReadiedOf[] | null }
  /** The leader takes no more batches, and finishes those it has. */
  | { readonly leaving: true }

/** Why a request was refused. Nothing of it was carried out. */
export type PeerRefusal = 'unsigned' | 'stale' | 'repeated' | 'not_leading' | 'damaged' | 'unknown'

/** The body of an error response. */
export type PeerProblem =
  | { readonly refused: PeerRefusal }
  | { readonly unavailable: StoreUnavailable['code']; readonly detail: string }
  | { readonly failed: string }

export interface PeerBody {
  readonly pieces: readonly (string | Buffer)[]
  readonly bytes: number
  readonly digest: string
}

export function bodyOf(argument: unknown): PeerBody {
  const text = argument === undefined ? '' : JSON.stringify(argument)
  return { pieces: [text], bytes: Buffer.byteLength(text), digest: digestOf(text) }
}

/** Partitions per piece. Neither side is blocked for long by one. */
const PIECE = 1000

/** The batcher gives a large call-back a batch of its own, so only the first one has to be looked at. */
export function hasLargeCallBack(batch: HandOffBatch): boolean {
  const [only] = batch.callBacks
  return only !== undefined && isLargeCallBack(only)
}

/** The first line is the batch without its partitions. The partitions follow, a thousand per line. */
export async function largeBodyOf(batch: HandOffBatch): Promise<PeerBody> {
  const [only] = batch.callBacks
  const partitions = only?.callBack.partitions ?? []
  const bare = batch.callBacks.map((batched) => ({
    ...batched,
    callBack: { ...batched.callBack, partitions: [] },
  }))
  const pieces: Buffer[] = []
  const hash = createHash('sha256')
  let bytes = 0
  const add = (value: unknown) => {
    const piece = Buffer.from(`${JSON.stringify(value)}\n`)
    hash.update(piece)
    bytes += piece.length
    pieces.push(piece)
  }
  add({ ...batch, callBacks: bare })
  for (let at = 0; at < partitions.length; at += PIECE) {
    add(partitions.slice(at, at + PIECE))
    await nextIteration()
  }
  return { pieces, bytes, digest: hash.digest('base64url') }
}

/** The argument of a verb. A large call-back is read line by line. */
export async function readBody(body: Buffer): Promise<unknown> {
  if (body.length === 0) return undefined
  if (body.at(-1) !== NEW_LINE) return JSON.parse(body.toString())
  let end = body.indexOf(NEW_LINE)
  const batch = JSON.parse(body.toString('utf8', 0, end)) as HandOffBatch
  const partitions: CalledBackPartition[] | undefined = batch.callBacks[0]?.callBack.partitions
  while (end + 1 < body.length) {
    const start = end + 1
    end = body.indexOf(NEW_LINE, start)
    const piece = JSON.parse(body.toString('utf8', start, end)) as CalledBackPartition[]
    partitions?.push(...piece)
    await nextIteration()
  }
  return batch
}

const NEW_LINE = 10

export function problemOf(error: unknown): PeerProblem {
  if (error instanceof StoreUnavailable) return { unavailable: error.code, detail: error.message }
  return { failed: error instanceof Error ? (error.stack ?? error.message) : String(error) }
}

/** Converts the leader's error for the node that sent the request. Throws if it is not from a leader. */
export function errorOf(problem: PeerProblem): Error {
  if ('unavailable' in problem) return new StoreUnavailable(problem.unavailable, problem.detail)
  if ('failed' in problem)
    return new Error('the leader failed to carry out a request', { cause: problem.failed })
  if ('refused' in problem)
    return new NotTaken(`the leader refused a request as ${problem.refused}`, problem.refused)
  throw new TypeError('not the error of a leader')
}

/** Nothing of the request was carried out, so it may be sent to the next leader. */
export class NotTaken extends Error {
  override name = 'NotTaken'
  readonly refusal: PeerRefusal | null

  constructor(message: string, refusal: PeerRefusal | null = null) {
    super(message)
    this.refusal = refusal
  }
}

export const SIGNATURE_HEADER = 'x-baton-peer'

/** How late a request may arrive, by the database's clock, which both sides know. */
const FRESH_MILLIS = 60_000
/** How far the requests of a node may arrive out of order. */
const NUMBERS_KEPT = 1024

type SignatureFault = 'unsigned' | 'stale' | 'repeated'

export interface SignedRequest {
  readonly from: string
  /** The id of the receiving node. */
  readonly to: string
  readonly number: number
  /** Digest of the body, which is read after the signature was checked. */
  readonly digest: string
}

interface Sender {
  readonly numbers: Float64Array
  heardAt: number
}

/**
 * Authenticates nodes to each other: it proves that the sender can read the database, without sending the
 * secret. A signature covers verb, body digest, both nodes, the time and a number that is used once, so a
 * recorded request cannot be replayed. The body is covered by its digest only, so an unsigned request is
 * refused before its body is read.
 */
export class PeerSignature {
  readonly nodeId: string
  readonly #stopwatch: Stopwatch
  readonly #senders = new Map<string, Sender>()
  #secret = ''
  #clusterId = ''
  #ahead = 0
  #number = 0

  constructor(nodeId: string, stopwatch: Stopwatch = () => performance.now()) {
    this.nodeId = nodeId
    this.#stopwatch = stopwatch
  }

  /** Called when the leader row was read. */
  learn({ secret, clusterId, now }: LeaderRow): void {
    this.#secret = secret
    this.#clusterId = clusterId
    this.#ahead = now - this.#stopwatch()
  }

  /** The header of a request, and the request's number. */
  sign(verb: string, to: string, digest: string): { header: string; number: number } {
    this.#number += 1
    const parts = [this.nodeId, to, Math.round(this.#now), this.#number, digest].join(' ')
    return { header: `${parts} ${this.#mac(verb, parts)}`, number: this.#number }
  }

  check(verb: string, header: unknown): SignedRequest | SignatureFault {
    if (typeof header !== 'string' || this.#secret === '') return 'unsigned'
    const end = header.lastIndexOf(' ')
    const parts = header.slice(0, Math.max(end, 0))
    if (!isSame(this.#mac(verb, parts), header.slice(end + 1))) return 'unsigned'
    const [from = '', to = '', time, numberText, digest = ''] = parts.split(' ')
    if (Math.abs(this.#now - Number(time)) > FRESH_MILLIS) return 'stale'
    const number = Number(numberText)
    return this.#isNew(from, number) ? { from, to, number, digest } : 'repeated'
  }

  /** The MAC of the leader's first line to a follower, by which the follower authenticates it. */
  signHello(term: string, asked: Pick<SignedRequest, 'from' | 'number'>, node = this.nodeId): string {
    return this.#mac('hello', [node, asked.from, asked.number, term].join(' '))
  }

  isHello(mac: string, term: string, node: string, number: number): boolean {
    return isSame(this.signHello(term, { from: this.nodeId, number }, node), mac)
  }

  get #now(): number {
    return this.#stopwatch() + this.#ahead
  }

  #mac(verb: string, parts: string): string {
    return createHmac('sha256', this.#secret)
      .update(`baton ${this.#clusterId} ${verb} ${parts}`)
      .digest('base64url')
  }

  /** Accepts each number once: it has a slot, and a slot accepts only increasing numbers. */
  #isNew(from: string, number: number): boolean {
    const now = this.#stopwatch()
    let sender = this.#senders.get(from)
    if (sender === undefined) {
      // Requests of the senders that are forgotten here are stale by now, so they cannot be replayed.
      for (const [name, { heardAt }] of this.#senders)
        if (now - heardAt > 3 * FRESH_MILLIS) this.#senders.delete(name)
      sender = { numbers: new Float64Array(NUMBERS_KEPT), heardAt: now }
      this.#senders.set(from, sender)
    }
    sender.heardAt = now
    const place = number % NUMBERS_KEPT
    if (!(number > (sender.numbers[place] ?? Number.POSITIVE_INFINITY))) return false
    sender.numbers[place] = number
    return true
  }
}

export const digestOf = (body: string | Buffer): string => hash('sha256', body, 'base64url')

function isSame(mac: string, given: string): boolean {
  const [a, b] = [Buffer.from(mac), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}
