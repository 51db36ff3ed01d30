import { ProblemError } from '@baton/client'
import type { InstanceStatus } from '@baton/protocol'
import { useEffect, useState } from 'preact/hooks'
import { client, explained, noteRefusal } from '../service/connection.ts'
import { followLive } from '../service/followers.ts'

const READ_EVERY_MILLIS = 2000

export type LoadedInstance =
  | { readonly kind: 'loading' }
  | { readonly kind: 'there'; readonly status: InstanceStatus }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly detail: string }

/** An instance as the service sees it; its numbers change too often for events, so they are read now and then. */
export function useInstance(instanceId: string): LoadedInstance {
  const [loaded, setLoaded] = useState<LoadedInstance>({ kind: 'loading' })
  useEffect(() => {
    let isCurrent = true
    const read = async () => {
      const outcome = await readInstance(instanceId)
      if (isCurrent)
        setLoaded((before) => (outcome.kind === 'failed' && before.kind === 'there' ? before : outcome))
    }
    setLoaded({ kind: 'loading' })
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
  }, [instanceId])
  return loaded
}

async function readInstance(instanceId: string): Promise<LoadedInstance> {
  try {
    return { kind: 'there', status: await client.peek().instanceStatus(instanceId) }
  } catch (error) {
    noteRefusal(error)
    if (error instanceof ProblemError && error.code === 'instance_unknown') return { kind: 'unknown' }
    return { kind: 'failed', detail: explained(error) }
  }
}
