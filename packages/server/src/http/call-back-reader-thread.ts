import { parentPort } from 'node:worker_threads'
import {
  type CallBackCheck,
  type CalledBackPartition,
  type CheckFailure,
  checkCallBack,
} from '@baton/protocol'
import { NotJson, parseJsonBytes } from './json-bytes.ts'

/** Reads large call-backs where it holds nobody up, and hands them back in pieces. */
export interface ReadingOrder {
  readonly id: number
  readonly body: ArrayBuffer
  readonly options: NonNullable<Parameters<typeof checkCallBack>[1]>
}

export type ReadingReply =
  | { readonly id: number; readonly kind: 'piece'; readonly partitions: readonly CalledBackPartition[] }
  | { readonly id: number; readonly kind: 'read'; readonly taskId: string; readonly recordTotal: number }
  | { readonly id: number; readonly kind: 'violations'; readonly failure: CheckFailure }
  | { readonly id: number; readonly kind: 'not-json'; readonly detail: string }
  | { readonly id: number; readonly kind: 'failed'; readonly detail: string }

/** Two thousand partitions take the event loop about two milliseconds to receive. */
const PIECE = 2000

const port = parentPort
if (port === null) throw new Error('the reader of call-backs was started outside of a worker')

function send(reply: ReadingReply): void {
  port?.postMessage(reply)
}

function tell(id: number, checked: CallBackCheck): void {
  if (!checked.ok) {
    send({ id, kind: 'violations', failure: checked })
    return
  }
  const { taskId, recordTotal, partitions } = checked.callBack
  for (let start = 0; start < partitions.length; start += PIECE) {
    send({ id, kind: 'piece', partitions: partitions.slice(start, start + PIECE) })
  }
  send({ id, kind: 'read', taskId, recordTotal })
}

port.on('message', ({ id, body, options }: ReadingOrder) => {
  try {
    tell(id, checkCallBack(parseJsonBytes(Buffer.from(body)), options))
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    send({ id, kind: error instanceof NotJson ? 'not-json' : 'failed', detail })
  }
})
