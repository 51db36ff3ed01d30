import type { CallBackCheck, CallBackOptions } from '@baton/protocol'

/**
 * Holds a call-back against the contract. Its schemas are loaded with the first one: they take 0.3 s of a processor, six
 * times the rest of the client, and whoever works or looks never needs them.
 */
export async function heldAgainstContract(body: unknown, options: CallBackOptions): Promise<CallBackCheck> {
  const { checkCallBack } = await import('@baton/protocol')
  // What names more levels than one request may is sent as several.
  return checkCallBack(body, { maxLevels: Number.POSITIVE_INFINITY, ...options })
}
