import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { systemClock, systemStopwatch } from '../../src/handoff/clock.ts'
import { InstanceRegister } from '../../src/handoff/instance-register.ts'
import type { Sighting } from '../../src/handoff/sightings.ts'
import type { Store } from '../../src/handoff/store.ts'

const BEAT = 5000

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Keeps what nodes say of themselves, as the stores do: whoever wrote last is there. */
function sharedStore(): Store {
  const nodes = new Map<string, Sighting['node']>()
  return {
    recordSightings: async (sightings: readonly Sighting[]) => {
      for (const { instanceId, node } of sightings) nodes.set(instanceId, node)
    },
    instance: async (instanceId: string) => ({ instanceId, node: nodes.get(instanceId) ?? null }),
  } as unknown as Store
}

const noted: string[] = []

async function started(store: Store, instanceId: string, label: string) {
  const events = { failed: () => {}, hasNamesake: () => noted.push(label) }
  const register = new InstanceRegister(
    store,
    { instanceId, version: '0' },
    events,
    systemClock,
    systemStopwatch,
  )
  onTestFinished(() => register.stop())
  await register.start()
  return register
}

beforeEach(() => {
  noted.length = 0
})

test('a node that takes the name of one that runs says so, once', async () => {
  const store = sharedStore()
  await started(store, 'east', 'first')
  await started(store, 'west', 'other')
  await vi.advanceTimersByTimeAsync(10 * BEAT + 100)
  await started(store, 'east', 'second')
  await vi.advanceTimersByTimeAsync(10 * BEAT)
  expect(noted).toEqual(['second'])
})

test('a node that starts again after it died, or while it ends, says nothing', async () => {
  const store = sharedStore()
  const died = await started(store, 'east', 'died')
  await vi.advanceTimersByTimeAsync(100)
  await died.stop()
  const ending = await started(store, 'east', 'ending')
  await vi.advanceTimersByTimeAsync(10 * BEAT + 100)
  ending.drain()
  await started(store, 'east', 'next')
  await vi.advanceTimersByTimeAsync(10 * BEAT)
  expect(noted).toEqual([])
})
