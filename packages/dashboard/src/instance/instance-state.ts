import type { InstanceStatus } from '@baton/protocol'
import { useEffect, useState } from 'preact/hooks'
import { client } from '../service/connection.ts'
import { followLive } from '../service/followers.ts'
import { type Loaded, load, shownAfter } from '../service/loaded.ts'

const READ_EVERY_MILLIS = 2000

/** The status of an instance. Its numbers change too often for events, so they are polled. */
export function useInstance(instanceId: string): {
  readonly loaded: Loaded<InstanceStatus>
  readonly refresh: () => void
} {
  const [asked, setAsked] = useState(0)
  const [loaded, setLoaded] = useState<Loaded<InstanceStatus>>({ kind: 'loading' })
  useEffect(() => setLoaded({ kind: 'loading' }), [instanceId])
  useEffect(() => {
    let isCurrent = true
    const read = async () => {
      const outcome = await load(() => client.peek().instanceStatus(instanceId), 'instance_unknown')
      if (isCurrent) setLoaded((before) => shownAfter(before, outcome))
    }
    void read()
    const reading = setInterval(() => {
      if (document.visibilityState === 'visible') void read()
    }, READ_EVERY_MILLIS)
    const unfollow = followLive({ reload: () => void read() })
    return () => {
      isCurrent = false
      clearInterval(reading)
      unfollow()
    }
  }, [instanceId, asked])
  return { loaded, refresh: () => setAsked((count) => count + 1) }
}
