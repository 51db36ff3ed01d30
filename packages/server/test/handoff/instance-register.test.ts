import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { Heartbeat } from '../../src/handoff/heartbeats.ts'
import { InstanceRegister } from '../../src/handoff/instance-register.ts'
import type { Store } from '../../src/handoff/store.ts'
import { type InstanceDetails, noTotals } from '../../src/handoff/views/queries.ts'

const BEAT = 5000

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Keeps the records of nodes as the stores do: the last write wins. */
function sharedStore(): Store {
  const nodes = new Map<string, Heartbeat['node']>()
  return {
    recordHeartbeats: async (heartbeats: readonly Heartbeat[]) => {
      for (const { instanceId, node } of heartbeats) nodes.set(instanceId, node)
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
    () => Date.now(),
    () => performance.now(),
  )
  onTestFinished(() => register.stop())
  await register.start()
  return register
}

beforeEach(() => {
  noted.length = 0
})

test('a node that takes the name of a running one logs it once', async () => {
  const store = sharedStore()
  await started(store, 'east', 'first')
  await started(store, 'west', 'other')
  await vi.advanceTimersByTimeAsync(10 * BEAT + 100)
  await started(store, 'east', 'second')
  await vi.advanceTimersByTimeAsync(10 * BEAT)
  expect(noted).toEqual(['second'])
})

test('a node that restarts after a crash, or during its shutdown, logs nothing', async () => {
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

/** Counts the pulls of clients. Writes and reads each wait until they are released. */
function slowStore() {
  const pulls = new Map<string, number>()
  const held = { writing: Promise.withResolvers<void>(), reading: Promise.withResolvers<void>() }
  const store = {
    recordHeartbeats: async (heartbeats: readonly Heartbeat[]) => {
      await held.writing.promise
      for (const { instanceId, pulls: seen } of heartbeats)
        pulls.set(instanceId, (pulls.get(instanceId) ?? 0) + seen)
    },
    instance: async (instanceId: string) => {
      const found = pulls.get(instanceId)
      await held.reading.promise
      if (found === undefined) return null
      return { instanceId, node: null, totals: { ...noTotals(), pulls: found } } as InstanceDetails
    },
    instances: async () => [],
  } as unknown as Store
  const hold = (what: keyof typeof held) => {
    held[what] = Promise.withResolvers()
    return held[what]
  }
  held.writing.resolve()
  held.reading.resolve()
  return { store, hold }
}

const all = { after: null, limit: 9 }

test('a seen instance is known while its heartbeat is being written', async () => {
  const { store, hold } = slowStore()
  const register = await started(store, 'east', 'first')
  register.notePull('w')
  const writing = hold('writing')
  const listing = register.instances(all)
  const asking = register.instance('w')
  await vi.advanceTimersByTimeAsync(1)
  writing.resolve()
  expect(await asking).toMatchObject({ instanceId: 'w', totals: { pulls: 1 } })
  await listing
  expect(await register.instance('w')).toMatchObject({ totals: { pulls: 1 } })
})

test('totals do not go back when a heartbeat comes in between', async () => {
  const { store, hold } = slowStore()
  const register = await started(store, 'east', 'first')
  register.notePull('w')
  await register.instances(all)
  register.notePull('w')
  const reading = hold('reading')
  const asking = register.instance('w')
  await register.instances(all)
  reading.resolve()
  expect(await asking).toMatchObject({ totals: { pulls: 2 } })
})

test('two heartbeats at once: the second ends when all heartbeats are written', async () => {
  const { store, hold } = slowStore()
  const register = await started(store, 'east', 'first')
  register.notePull('w')
  const first = hold('writing')
  const listing = register.instances(all)
  await vi.advanceTimersByTimeAsync(1)
  hold('writing').resolve()
  const asking = register.instance('w')
  await vi.advanceTimersByTimeAsync(1)
  first.resolve()
  expect(await asking).toMatchObject({ totals: { pulls: 1 } })
  await listing
})

test('heartbeats that cannot be written are still shown, as long as the store can be read', async () => {
  const { store, hold } = slowStore()
  const register = await started(store, 'east', 'first')
  register.notePull('w')
  const writing = hold('writing')
  const listing = register.instances(all)
  const asking = register.instance('w')
  await vi.advanceTimersByTimeAsync(1)
  writing.reject(new Error('the disk is full'))
  expect(await asking).toMatchObject({ instanceId: 'w', totals: { pulls: 1 } })
  await listing
  hold('writing').resolve()
})

test('many instances are noted up to a number, and written a few at a time', async () => {
  const sizes: number[] = []
  const names = new Set<string>()
  const store = {
    ...sharedStore(),
    recordHeartbeats: async (heartbeats: readonly Heartbeat[]) => {
      sizes.push(heartbeats.length)
      for (const { instanceId } of heartbeats) names.add(instanceId)
    },
  }
  const register = await started(store, 'node', 'node')
  for (let at = 0; at < 30_000; at += 1) register.notePull(`made-up-${at}`)
  await register.stop()
  expect(Math.max(...sizes)).toBeLessThanOrEqual(501)
  expect(names.size).toBe(10_001)
  expect(names).toContain('node')
})

test('of instances that cannot be written, each is written with a later heartbeat, and once', async () => {
  let calls = 0
  const pulls = new Map<string, number>()
  const store = {
    ...sharedStore(),
    recordHeartbeats: async (heartbeats: readonly Heartbeat[]) => {
      calls += 1
      if (calls === 3) throw new Error('the store is away')
      for (const { instanceId, pulls: seen } of heartbeats)
        pulls.set(instanceId, (pulls.get(instanceId) ?? 0) + seen)
    },
  }
  const register = await started(store, 'node', 'node')
  for (let at = 0; at < 1200; at += 1) register.notePull(`w${at}`)
  await register.stop()
  expect(pulls.size).toBe(501)
  await register.stop()
  expect(pulls.size).toBe(1201)
  pulls.delete('node')
  expect(new Set(pulls.values())).toEqual(new Set([1]))
})
