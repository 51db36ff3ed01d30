import { timer } from './timer.ts'

/**
 * A signal for one request: aborted by the caller's, or when the time is over. Put together by hand instead of with
 * AbortSignal.any, which keeps a reference in a long-lived signal for each request that was ever made under it.
 */
export function requestSignal(outer: AbortSignal | undefined, timeoutMillis: number) {
  const controller = new AbortController()
  let timedOut = false
  const running = timer(() => {
    timedOut = true
    controller.abort()
  }, timeoutMillis)
  const follow = () => controller.abort(outer?.reason)
  if (outer?.aborted) follow()
  else outer?.addEventListener('abort', follow, { once: true })
  return {
    signal: controller.signal,
    timedOut: () => timedOut,
    /** To be called when the request is over. */
    release: () => {
      clearTimeout(running)
      outer?.removeEventListener('abort', follow)
    },
  }
}
