import { baseUrl } from './connection.ts'

const PATIENCE_MILLIS = 10_000

/**
 * Uses an endpoint that needs no token. A proxy in front of an unreachable service answers with 502 or
 * similar.
 */
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
