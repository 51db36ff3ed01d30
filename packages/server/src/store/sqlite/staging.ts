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
  readonly ticket?: number
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
    lastTicket += 1
    for (let start = 0; start < partitions.length; start += PIECE) {
      // A thread that is gone is noticed by the batch itself.
      send({ ticket: lastTicket, partitions: partitions.slice(start, start + PIECE) }).catch(() => undefined)
      await nextTurn()
    }
    callBacks.push({ ...order, callBack: { ...order.callBack, partitions: [] }, ticket: lastTicket })
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
    if (this.#partitions.size === 0) return batch
    return { ...batch, callBacks: batch.callBacks.map((order) => this.#completed(order)) }
  }

  #completed({ ticket, ...order }: StagedOrder): CallBackOrder {
    const partitions = ticket === undefined ? undefined : this.#partitions.get(ticket)
    if (ticket === undefined || partitions === undefined) return order
    this.#partitions.delete(ticket)
    return { ...order, callBack: { ...order.callBack, partitions } }
  }
}
