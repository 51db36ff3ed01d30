import { baseUrl } from './connection.ts'

const PATIENCE_MILLIS = 10_000

/** Asks for nothing that takes a token. A proxy that answers for an absent service answers with 502 or the like. */
export async function isServiceThere(signal: AbortSignal): Promise<boolean> {
  try {
    const { status } = await fetch(new URL('livez', baseUrl), {
      cache: 'no-store',
      signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MILLIS)]),
    })
    return status < 500
  } catch {
    return false
  }
}
