import type { SubscriptionStatus } from '@baton/protocol'
import { useEffect, useState } from 'preact/hooks'
import { client, explained, noteRefusal } from '../service/connection.ts'
import { followLive } from '../service/followers.ts'
import { type Loaded, shownAfter } from '../service/loaded.ts'

const READ_EVERY_MILLIS = 3000

/** Polls a value while the page is visible, because it does not come as events. */
export function useReading<Value>(read: () => Promise<Value>, of: readonly unknown[]) {
  const [asked, setAsked] = useState(0)
  const [loaded, setLoaded] = useState<Loaded<Value>>({ kind: 'loading' })
  useEffect(() => {
    let isCurrent = true
    const readNow = async () => {
      const outcome = await read().then(
        (value): Loaded<Value> => ({ kind: 'there', value }),
        (error: unknown): Loaded<Value> => {
          noteRefusal(error)
          return { kind: 'failed', detail: explained(error) }
        },
      )
      if (isCurrent) setLoaded((before) => shownAfter(before, outcome))
    }
    void readNow()
    const reading = setInterval(() => {
      if (document.visibilityState === 'visible') void readNow()
    }, READ_EVERY_MILLIS)
    const unfollow = followLive({ reload: () => void readNow() })
    return () => {
      isCurrent = false
      clearInterval(reading)
      unfollow()
    }
  }, [...of, asked])
  return { loaded, refresh: () => setAsked((count) => count + 1) }
}

export const useSubscriptions = () =>
  useReading<readonly SubscriptionStatus[]>(() => client.peek().subscriptions.list(), [])
