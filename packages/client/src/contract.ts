import type { CallBackCheck, CallBackOptions } from '@baton/protocol'

/**
 * Checks a call-back against the contract. The schemas are loaded on first use: loading them is slow, and
 * programs that only pull or read never need them.
 */
export async function heldAgainstContract(body: unknown, options: CallBackOptions): Promise<CallBackCheck> {
  const { checkCallBack } = await import('@baton/protocol')
  // A call-back with more levels than one request may have is sent in several requests.
  return checkCallBack(body, { maxLevels: Number.POSITIVE_INFINITY, ...options })
}
