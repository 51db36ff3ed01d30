import type { InstanceStatus } from '@baton/protocol'
import { signal } from '@preact/signals'
import { client, noteRefusal, tokenWanted } from './connection.ts'
import { followLive } from './followers.ts'

const LOADED_AT_MOST = 500
/** State changes arrive as events. This interval is for the other numbers. */
const REFRESH_MILLIS = 8000

export const instances = signal<readonly InstanceStatus[]>([])
export const instancesLoad = signal<'loading' | 'loaded' | 'failed'>('loading')
export const instancesBeyond = signal(false)

export function followInstances(): void {
  followLive({
    reload: () => void loadInstances(),
    onEvent: (event) => {
      if (event.name === 'instance') noteInstance(event.data)
    },
  })
  setInterval(() => {
    const isFirst = instancesLoad.peek() === 'loading'
    if (document.visibilityState === 'visible' && !isFirst && tokenWanted.peek() === 'no')
      void loadInstances()
  }, REFRESH_MILLIS)
}

function noteInstance(instance: InstanceStatus): void {
  const others = instances.peek().filter(({ instanceId }) => instanceId !== instance.instanceId)
  instances.value = [...others, instance].sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1))
}

async function loadInstances(): Promise<void> {
  try {
    const { instances: loaded, next } = await client.peek().instances({ limit: LOADED_AT_MOST })
    instances.value = loaded
    instancesBeyond.value = next !== null
    instancesLoad.value = 'loaded'
  } catch (error) {
    noteRefusal(error)
    if (instancesLoad.peek() === 'loading') instancesLoad.value = 'failed'
  }
}
