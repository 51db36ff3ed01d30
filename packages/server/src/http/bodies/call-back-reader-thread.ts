import { parentPort } from 'node:worker_threads'
import { type CallBackCheck, CallBackChecker, checkCallBack } from '@baton/protocol'
import { columnsOf, ownedBy, type ReadingReply, type ReadRequest } from './call-back-reader.ts'
import { ElementTooLarge, JsonArrayText } from './json-array.ts'
import { NotJson, parseJsonBytes } from './json-bytes.ts'

/**
 * Partitions per message, so that receiving one does not block the event loop (bench scenario
 * call-back-stall).
 */
const PIECE = 5_000

const port = parentPort
if (port === null) throw new Error('the reader of call-backs was started outside of a worker')

function send(reply: ReadingReply, owned: ArrayBuffer[] = []): void {
  port?.postMessage(reply, owned)
}

function replyWith(id: number, checked: CallBackCheck): void {
  if (!checked.ok) {
    send({ id, kind: 'violations', failure: checked })
    return
  }
  const { taskId, recordTotal, partitions } = checked.callBack
  for (let start = 0; start < partitions.length; start += PIECE) {
    const columns = columnsOf(partitions.slice(start, start + PIECE))
    send({ id, kind: 'piece', columns }, ownedBy(columns))
  }
  send({ id, kind: 'read', taskId, recordTotal })
}

function check(bytes: Buffer, options: ReadRequest['options']): CallBackCheck {
  const array = new JsonArrayText(bytes)
  // A large object is refused without parsing it. Other values take no more memory than their text.
  if (array.firstCharacter === '{') return checkCallBack({}, options)
  if (array.firstCharacter !== '[') return checkCallBack(parseJsonBytes(bytes), options)
  const checker = new CallBackChecker(options)
  try {
    for (const elements of array.elements()) for (const element of elements) checker.take(element)
  } catch (error) {
    if (!(error instanceof ElementTooLarge)) throw error
    return { ok: false, violations: [{ pointer: `/${error.index}`, detail: error.message }], total: 1 }
  }
  return checker.result()
}

port.on('message', ({ id, body, options }: ReadRequest) => {
  try {
    // The chunks are removed from the message, so that they can be freed before the body is parsed.
    replyWith(id, check(Buffer.concat(body.splice(0).map((chunk) => Buffer.from(chunk))), options))
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    send({ id, kind: error instanceof NotJson ? 'not-json' : 'failed', detail })
  }
})
