import { setImmediate as nextTurn } from 'node:timers/promises'
import type { CalledBackPartition } from '@baton/protocol'
import type { CallBackOrder, HandOffBatch } from '../../handoff/store.ts'

/** Larger call-backs cross to the thread in pieces of this size: writing one takes a millisecond or two. */
const PIECE = 2000

export interface Piece {
  readonly ticket: number
  readonly partitions: readonly CalledBackPartition[]
}

/** In place of a call-back whose partitions went ahead. */
interface StagedOrder extends CallBackOrder {
  readonly staged?: { readonly ticket: number; readonly partitions: number }
}

let lastTicket = 0

export function isLarge({ callBacks }: HandOffBatch): boolean {
  return callBacks.some(({ callBack }) => callBack.partitions.length > PIECE)
}

/**
 * Sends the partitions of large call-backs ahead, a piece per turn of the event loop, so that no
 * array, however large, holds other requests up. Nothing is stored before the batch itself arrives.
 */
export async function sendAhead(
  batch: HandOffBatch,
  send: (piece: Piece) => Promise<unknown>,
): Promise<HandOffBatch> {
  const callBacks: StagedOrder[] = []
  for (const order of batch.callBacks) {
    const { partitions } = order.callBack
    if (partitions.length <= PIECE) {
      callBacks.push(order)
      continue
    }
    // A ticket of its own, kept over the turns: other large call-backs may be on their way at the same time.
    lastTicket += 1
    const ticket = lastTicket
    for (let start = 0; start < partitions.length; start += PIECE) {
      // A thread that is gone is noticed by the batch itself.
      send({ ticket, partitions: partitions.slice(start, start + PIECE) }).catch(() => undefined)
      await nextTurn()
    }
    const staged = { ticket, partitions: partitions.length }
    callBacks.push({ ...order, callBack: { ...order.callBack, partitions: [] }, staged })
  }
  return { ...batch, callBacks }
}

/** The thread's side: keeps the pieces until their batch comes. */
export class Staging {
  readonly #partitions = new Map<number, CalledBackPartition[]>()

  keep({ ticket, partitions }: Piece): void {
    const kept = this.#partitions.get(ticket) ?? []
    for (const partition of partitions) kept.push(partition)
    this.#partitions.set(ticket, kept)
  }

  complete(batch: HandOffBatch): HandOffBatch {
    return { ...batch, callBacks: batch.callBacks.map((order) => this.#completed(order)) }
  }

  /** Less, or more, than was called back must never be stored and answered as if it were all. */
  #completed({ staged, ...order }: StagedOrder): CallBackOrder {
    if (staged === undefined) return order
    const partitions = this.#partitions.get(staged.ticket) ?? []
    this.#partitions.delete(staged.ticket)
    if (partitions.length !== staged.partitions)
      throw new Error(
        `of ${staged.partitions} partitions called back, ${partitions.length} reached the store`,
      )
    return { ...order, callBack: { ...order.callBack, partitions } }
  }
}
