import { type ProblemCode, ProblemError } from '@baton/client'
import { useEffect, useState } from 'preact/hooks'
import { explained, noteRefusal } from './connection.ts'
import { followLive } from './live.ts'

/** The loading state of a page's content. */
export type Loaded<Value> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'there'; readonly value: Value }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly detail: string }

/** `unknown` is the error code for an object that does not exist. */
export async function load<Value>(read: () => Promise<Value>, unknown?: ProblemCode): Promise<Loaded<Value>> {
  try {
    return { kind: 'there', value: await read() }
  } catch (error) {
    noteRefusal(error)
    if (error instanceof ProblemError && error.code === unknown) return { kind: 'unknown' }
    return { kind: 'failed', detail: explained(error) }
  }
}

/** Keeps the previous value if a reload fails. */
export function shownAfter<Value>(before: Loaded<Value>, now: Loaded<Value>): Loaded<Value> {
  return now.kind === 'failed' && before.kind === 'there' ? before : now
}

/** Polls a value while the page is visible, because it does not come as events. */
export function usePolled<Value>(
  read: () => Promise<Loaded<Value>>,
  everyMillis: number,
  of: readonly unknown[] = [],
): { readonly loaded: Loaded<Value>; readonly refresh: () => void } {
  const [refreshes, setRefreshes] = useState(0)
  const [loaded, setLoaded] = useState<Loaded<Value>>({ kind: 'loading' })
  useEffect(() => {
    let isCurrent = true
    const readNow = async () => {
      const outcome = await read()
      if (isCurrent) setLoaded((before) => shownAfter(before, outcome))
    }
    void readNow()
    const reading = setInterval(() => {
      if (document.visibilityState === 'visible') void readNow()
    }, everyMillis)
    const unfollow = followLive({ reload: () => void readNow() })
    return () => {
      isCurrent = false
      clearInterval(reading)
      unfollow()
    }
  }, [...of, refreshes])
  return { loaded, refresh: () => setRefreshes((count) => count + 1) }
}
