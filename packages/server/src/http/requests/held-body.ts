import type { IncomingMessage } from 'node:http'

/** A body on its way in, as far as it counts against what the node may hold. */
export interface BodyHold {
  /** False: there is no room for these bytes, and the body has to be refused. */
  add(bytes: number): boolean
  /** All of it is here: it no longer gives way to others. */
  arrived(): void
  /** Somebody works on it also when its connection is gone. */
  retain(): void
  release(): void
}

/** `giveUp` is called when the body has to give way to others before it has arrived. */
export type HoldBody = (isUrgent: boolean, address: string | undefined, giveUp: () => void) => BodyHold

const holds = new WeakMap<IncomingMessage, BodyHold>()

export function rememberHold(request: IncomingMessage, hold: BodyHold): void {
  holds.set(request, hold)
}

/** Keeps the bytes of a request counted until `work` is done, whatever becomes of its connection. */
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
