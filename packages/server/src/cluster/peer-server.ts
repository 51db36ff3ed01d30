import { createHash, type Hash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { withTimeout } from '../handoff/clock.ts'
import { parseLeaseId } from '../handoff/lease-id.ts'
import { type HandOffAnswers, type HandOffBatch, StoreUnavailable } from '../handoff/store.ts'
import type { HintStreams } from './hint-streams.ts'
import {
  type CarriedVerb,
  digestOf,
  HINTS,
  isCarried,
  NotTaken,
  type PeerProblem,
  type PeerRefusal,
  type PeerSignature,
  problemOf,
  readBody,
  SIGNATURE_HEADER,
} from './peer-protocol.ts'

/** Followers are trusted, but no call-back is this long, so a longer body is an error. */
const LONGEST_BODY = 2 ** 30
/** How long followers may take to close their connections when this node stops. */
const DISCONNECT_MILLIS = 2000

/** The requests of other nodes that this node runs while it leads. */
export interface Carried {
  runCarriedBatch(batch: HandOffBatch, from: string): Promise<HandOffAnswers>
  run(verb: Exclude<CarriedVerb, 'handOff'>, argument: unknown): Promise<unknown>
}

/** Serves the other nodes: the requests that they forward, and their hint streams. */
export class PeerServer {
  readonly #streams: HintStreams
  readonly #signature: PeerSignature
  readonly #carried: Carried
  readonly #connections = new Set<Socket>()

  constructor(signature: PeerSignature, streams: HintStreams, carried: Carried) {
    this.#signature = signature
    this.#streams = streams
    this.#carried = carried
  }

  /** `verb` is the part of the path after `/peer/`. */
  serve(verb: string, request: IncomingMessage, response: ServerResponse): void {
    const signed = this.#signature.check(verb, request.headers[SIGNATURE_HEADER])
    if (typeof signed === 'string') refuse(response, signed)
    else if (signed.to !== this.#signature.nodeId) refuse(response, 'not_leading')
    else if (verb === HINTS) {
      if (!this.#streams.open(signed, request, response)) refuse(response, 'not_leading')
    } else if (!isCarried(verb)) refuse(response, 'unknown')
    else if (Number(request.headers['content-length'] ?? 0) > LONGEST_BODY) refuse(response, 'damaged')
    else {
      this.#track(request.socket)
      readBytes(request, (body, digest) => {
        if (digest === signed.digest) void this.#answer(verb, body, signed.from, response)
        else refuse(response, 'damaged')
      })
    }
  }

  /**
   * Resolves when the followers have closed their connections, which they do when the leader has resigned. If
   * this node closed them, it might close one on which a request has just been sent.
   */
  async disconnected(): Promise<void> {
    const closed = [...this.#connections].map(
      (socket) => new Promise((resolve) => socket.once('close', resolve)),
    )
    await withTimeout(Promise.all(closed), DISCONNECT_MILLIS, () => [])
  }

  #track(socket: Socket): void {
    if (this.#connections.has(socket)) return
    this.#connections.add(socket)
    socket.once('close', () => this.#connections.delete(socket))
  }

  async #answer(verb: CarriedVerb, body: Buffer, from: string, response: ServerResponse): Promise<void> {
    try {
      const argument = await readBody(body)
      if (verb !== 'handOff') {
        send(response, 200, JSON.stringify((await this.#carried.run(verb, argument)) ?? null))
        return
      }
      const batch = argument as HandOffBatch
      const answers = await this.#carried.runCarriedBatch(batch, from)
      if (isThere(response)) send(response, 200, JSON.stringify(answers))
      else this.#undo(batch, answers, from)
    } catch (error) {
      if (error instanceof NotTaken) refuse(response, 'not_leading')
      else send(response, error instanceof StoreUnavailable ? 503 : 500, JSON.stringify(problemOf(error)))
    }
  }

  /**
   * The node that sent the batch is gone, and so are the connections of its clients. The leases of its pulls
   * are undone, except for pulls with a key: the client repeats those at another node, and may already have
   * its answer. This is best effort, since leases expire anyway.
   */
  #undo(batch: HandOffBatch, answers: HandOffAnswers, from: string): void {
    const undos = answers.pulls
      .flatMap(({ partitions }, position) => (batch.pulls[position]?.key === null ? partitions : []))
      .flatMap(({ lease }) => (lease === null ? [] : (parseLeaseId(lease.id) ?? [])))
    if (undos.length === 0) return
    const undoing = { settles: [], renews: [], undos, callBacks: [], pulls: [] }
    this.#carried.runCarriedBatch(undoing, from).catch(() => undefined)
  }
}

/**
 * A large body arrives in many chunks. They are hashed as they arrive, which avoids one long hash at the end.
 */
function readBytes(request: IncomingMessage, done: (body: Buffer, digest: string) => void): void {
  const chunks: Buffer[] = []
  let hash: Hash | undefined
  request.on('data', (chunk: Buffer) => {
    const [first] = chunks
    if (first !== undefined) hash ??= createHash('sha256').update(first)
    hash?.update(chunk)
    chunks.push(chunk)
  })
  request.on('end', () => {
    const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
    done(body, hash?.digest('base64url') ?? digestOf(body))
  })
  // The request was cut off, so there is no one to answer.
  request.on('error', () => undefined)
}

/** Whether the sender still waits: a node never closes its half of a connection before it has the answer. */
function isThere({ socket }: ServerResponse): boolean {
  return socket?.writable === true && !socket.readableEnded
}

function refuse(response: ServerResponse, refused: PeerRefusal): void {
  const problem: PeerProblem = { refused }
  // The rest of the body is not read.
  response.shouldKeepAlive = response.req.complete
  send(response, refused === 'not_leading' ? 409 : 401, JSON.stringify(problem))
}

function send(response: ServerResponse, status: number, text: string): void {
  const length = String(Buffer.byteLength(text))
  response.writeHead(status, ['content-type', 'application/json', 'content-length', length]).end(text)
}
