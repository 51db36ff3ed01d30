/** Resolves after so many milliseconds; rejects with the signal's reason as soon as it is aborted. */
export function pause(millis: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason)
      return
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', interrupt)
      resolve()
    }, millis)
    const interrupt = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', interrupt, { once: true })
  })
}
