import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { CalledBackPartition } from '@baton/protocol'
import {
  type HandOffBatch,
  LARGE_CALL_BACK_PARTITIONS,
  type ReadiedOf,
  type Store,
  StoreUnavailable,
} from '../handoff/store.ts'
import { digestOf } from './peer-signature.ts'

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
  return only !== undefined && only.callBack.partitions.length > LARGE_CALL_BACK_PARTITIONS
}

/** The first line is the batch without its partitions. The partitions follow, a thousand per line. */
export async function largeBodyOf(batch: HandOffBatch): Promise<PeerBody> {
  const [only] = batch.callBacks
  const partitions = only?.callBack.partitions ?? []
  const bare = batch.callBacks.map((order) => ({ ...order, callBack: { ...order.callBack, partitions: [] } }))
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
    await nextTurn()
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
    await nextTurn()
  }
  return batch
}

const NEW_LINE = 10

export function problemOf(error: unknown): PeerProblem {
  if (error instanceof StoreUnavailable) return { unavailable: error.code, detail: error.message }
  return { failed: error instanceof Error ? (error.stack ?? error.message) : String(error) }
}

/** Converts the leader's error for the node that sent the request. */
export function errorOf(problem: PeerProblem): Error {
  if ('unavailable' in problem) return new StoreUnavailable(problem.unavailable, problem.detail)
  if ('failed' in problem)
    return new Error('the leader failed to carry out a request', { cause: problem.failed })
  return new NotTaken(`the leader refused a request as ${problem.refused}`)
}

/** Nothing of the request was carried out, so it may be sent to the next leader. */
export class NotTaken extends Error {
  override name = 'NotTaken'
}
