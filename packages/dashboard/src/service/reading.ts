import { useEffect, useRef, useState } from 'preact/hooks'
import { followLive, type Loaded, load, shownAfter } from './live.ts'

const READ_EVERY_MILLIS = 2000
const READ_AGAIN_MILLIS = 5000

/**
 * Reads a value, and again when `look` changes, but not more often than every two seconds. `of` identifies the
 * value: when it changes, the previous one is dropped.
 */
export function useReading<Value>(
  read: () => Promise<Value>,
  of: readonly unknown[],
  look: unknown,
): { readonly loaded: Loaded<Value>; readonly refresh: () => void } {
  const [loaded, setLoaded] = useState<Loaded<Value>>({ kind: 'loading' })
  const [refreshes, setRefreshes] = useState(0)
  const readAt = useRef(0)
  const refresh = () => setRefreshes((count) => count + 1)
  useEffect(() => {
    readAt.current = 0
    setLoaded({ kind: 'loading' })
  }, of)
  useEffect(() => followLive({ reload: refresh }), [])
  useEffect(() => {
    let isCurrent = true
    const wait = Math.max(0, readAt.current + READ_EVERY_MILLIS - Date.now())
    let again: ReturnType<typeof setTimeout> | undefined
    const waiting = setTimeout(async () => {
      readAt.current = Date.now()
      const outcome = await load(read)
      if (!isCurrent) return
      setLoaded((before) => shownAfter(before, outcome))
      if (outcome.kind === 'failed') again = setTimeout(refresh, READ_AGAIN_MILLIS)
    }, wait)
    return () => {
      isCurrent = false
      clearTimeout(waiting)
      clearTimeout(again)
    }
  }, [...of, look, refreshes])
  return { loaded, refresh }
}
