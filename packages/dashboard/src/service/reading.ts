import { useEffect, useRef, useState } from 'preact/hooks'
import { followLive, type Loaded, load, shownAfter } from './live.ts'

const READ_EVERY_MILLIS = 2000

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
    const waiting = setTimeout(async () => {
      readAt.current = Date.now()
      const outcome = await load(read)
      if (isCurrent) setLoaded((before) => shownAfter(before, outcome))
    }, wait)
    return () => {
      isCurrent = false
      clearTimeout(waiting)
    }
  }, [...of, look, refreshes])
  return { loaded, refresh }
}
