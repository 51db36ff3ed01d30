import { parentPort, workerData } from 'node:worker_threads'
import type { Policy } from '../../handoff/policy.ts'
import { StoreRefused, type StoreUnavailable } from '../../handoff/store.ts'
import { asUnavailable, DataFolder } from './folder.ts'
import { Session, type Verbs } from './session.ts'
import { Staging } from './staging.ts'

/**
 * SQLite is synchronous: it lives on a thread of its own, so that the event loop answers requests
 * while a commit waits for the disk.
 */
export interface ThreadData {
  readonly folder: string
  readonly policy: Policy
}

export interface Call {
  readonly id: number
  readonly verb: keyof Verbs | 'stage' | 'close'
  /** JSON: cheaper to take across than an object (32 pulls and settles: 150 µs instead of 235, both ways). */
  readonly argument: string
  readonly now: number
}

/** Errors lose their class on the way between threads, so they travel as what they are. */
export type Reply =
  /** JSON as well. */
  | { readonly id: number; readonly result: string }
  | {
      readonly id: number
      readonly unavailable: { readonly code: StoreUnavailable['code']; readonly detail: string }
    }
  | { readonly id: number; readonly refused: string }
  | { readonly id: number; readonly failure: { readonly text: string; readonly stack: string } }

const ROOM_CHECK_MILLIS = 1000

const port = parentPort
if (port === null) throw new Error('the store thread was started outside of a worker')

const { folder: path, policy } = workerData as ThreadData
const folder = new DataFolder(path)
const staging = new Staging()
let database: ReturnType<DataFolder['open']> | undefined
let session: Session | undefined
let room = { checkedAt: Number.NEGATIVE_INFINITY, enough: true }

function hasRoom(): boolean {
  const at = performance.now()
  if (at - room.checkedAt >= ROOM_CHECK_MILLIS || !room.enough)
    room = { checkedAt: at, enough: folder.hasRoom() }
  return room.enough
}

function open(): Session {
  database = folder.open()
  session = new Session(database, policy, hasRoom)
  return session
}

/** After the disk failed nothing that the connection remembers is to be trusted: the next call opens anew. */
function abandon(): void {
  session = undefined
  try {
    database?.close()
  } catch {
    // It was unusable; that is why it goes.
  }
  database = undefined
}

function execute({ verb, argument, now }: Call): unknown {
  if (verb === 'close') {
    try {
      session?.writeUp(now)
    } catch {
      // The journal has it, and the next opening writes it up: an end must not fail because the disk does.
    }
    abandon()
    folder.unlock()
    return undefined
  }
  if (verb === 'stage') return staging.keep(JSON.parse(argument))
  const { verbs } = session ?? open()
  if (verb === 'handOff') return verbs.handOff(staging.complete(JSON.parse(argument)), now)
  return (verbs[verb] as (argument: unknown, now: number) => unknown)(JSON.parse(argument), now)
}

function replyTo(id: number, work: () => unknown): Reply {
  try {
    return { id, result: JSON.stringify(work() ?? null) }
  } catch (error) {
    if (error instanceof StoreRefused) return { id, refused: error.message }
    const unavailable = asUnavailable(error)
    if (unavailable !== undefined) {
      abandon()
      return { id, unavailable: { code: unavailable.code, detail: unavailable.message } }
    }
    const { message, stack } = error instanceof Error ? error : new Error(String(error))
    return { id, failure: { text: message, stack: stack ?? message } }
  }
}

port.postMessage(
  replyTo(0, () => {
    folder.lock()
    open()
  }),
)
port.on('message', (call: Call) => {
  port.postMessage(replyTo(call.id, () => execute(call)))
  if (call.verb === 'close') port.close()
})
