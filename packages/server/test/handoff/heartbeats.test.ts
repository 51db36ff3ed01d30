import { describe, expect, test } from 'vitest'
import { Heartbeats } from '../../src/handoff/heartbeats.ts'
import { silenceAllowed, statusOf } from '../../src/handoff/instance-status.ts'
import { type InstanceDetails, noTotals } from '../../src/handoff/views/queries.ts'
import { anInstance } from '../disk/conformance/builders.ts'

const NOW = 1_000_000_000

const stored = (changes: Partial<InstanceDetails> = {}): InstanceDetails =>
  anInstance({
    firstSeenAt: NOW - 500_000,
    lastSeenAt: NOW - 400_000,
    totals: { ...noTotals(), pulls: 10, done: 5 },
    now: NOW,
    ...changes,
  })

function watched() {
  const clock = { now: 0 }
  return { heartbeats: new Heartbeats(() => clock.now), clock }
}

describe('heartbeats', () => {
  test('add up per instance until they are taken, and are then forgotten', () => {
    const { heartbeats, clock } = watched()
    heartbeats.note('w', 'worker', 1)
    clock.now += 2000
    heartbeats.note('w', 'worker', 1)
    clock.now += 1000
    heartbeats.note('p', 'producer', 0)
    clock.now += 500.2
    expect(heartbeats.take().heartbeats).toEqual([
      {
        instanceId: 'w',
        role: 'worker',
        pulls: 2,
        seenMillisAgo: { first: 3500, last: 1500 },
        node: null,
      },
      {
        instanceId: 'p',
        role: 'producer',
        pulls: 0,
        seenMillisAgo: { first: 500, last: 500 },
        node: null,
      },
    ])
    expect(heartbeats.take().heartbeats).toEqual([])
  })

  test('are restored when they could not be written, together with later ones', () => {
    const { heartbeats, clock } = watched()
    heartbeats.note('w', 'worker', 2)
    heartbeats.note('q', 'worker', 0)
    clock.now += 1000
    const { restore } = heartbeats.take()
    clock.now += 1000
    heartbeats.note('w', 'producer', 1)
    clock.now += 1000
    restore()
    expect(heartbeats.take().heartbeats).toMatchObject([
      { instanceId: 'w', role: 'producer', pulls: 3, seenMillisAgo: { first: 3000, last: 1000 } },
      { instanceId: 'q', seenMillisAgo: { first: 3000, last: 3000 } },
    ])
  })

  test('update a stored record, and replace one that is not stored yet', () => {
    const { heartbeats, clock } = watched()
    expect(heartbeats.merge('w', null, NOW)).toBeNull()
    expect(heartbeats.merge('w', stored(), NOW)).toEqual(stored())
    heartbeats.note('w', 'worker', 2)
    clock.now += 3000
    heartbeats.note('w', 'worker', 0)
    clock.now += 1000
    expect(heartbeats.merge('w', stored(), NOW)).toMatchObject({
      firstSeenAt: NOW - 500_000,
      lastSeenAt: NOW - 1000,
      totals: { pulls: 12, done: 5 },
    })
    expect(heartbeats.merge('w', null, NOW)).toMatchObject({
      firstSeenAt: NOW - 4000,
      lastSeenAt: NOW - 1000,
      totals: { pulls: 2 },
    })
  })
})

describe('the status of an instance', () => {
  const seenAgo = (millis: number, changes: Partial<InstanceDetails> = {}) =>
    statusOf(stored({ lastSeenAt: NOW - millis, ...changes }))

  test('is up for a client that was seen recently', () => {
    expect(seenAgo(60_000)).toBe('up')
    expect(seenAgo(600_000)).toBe('down')
    expect(seenAgo(600_000, { role: 'producer' })).toBe('down')
  })

  test('is silent when four fifths of a lease have passed without a word, and up before', () => {
    const silentAfterMillis = silenceAllowed(300_000)
    expect(seenAgo(239_999, { leases: 1, silentAfterMillis })).toBe('up')
    expect(seenAgo(240_000, { leases: 1, silentAfterMillis })).toBe('silent')
    expect(seenAgo(600_000, { leases: 1 })).toBe('up')
  })

  test('is lost when a lease expired while it was silent, until it is heard from again', () => {
    const lostUnlessSeenSince = NOW - 300_000
    expect(seenAgo(300_001, { lostUnlessSeenSince })).toBe('lost')
    expect(seenAgo(300_001, { lostUnlessSeenSince, leases: 1 })).toBe('lost')
    expect(seenAgo(300_000, { lostUnlessSeenSince })).toBe('down')
    expect(seenAgo(1000, { lostUnlessSeenSince })).toBe('up')
  })

  test('is up for a node while its heartbeat is fresh, and draining when it drains', () => {
    const node = { version: '1', startedAt: NOW - 900_000, draining: false, load: 12 }
    expect(seenAgo(10_000, { role: 'service', node })).toBe('up')
    expect(seenAgo(10_000, { role: 'service', node: { ...node, draining: true } })).toBe('draining')
    expect(seenAgo(30_000, { role: 'service', node: { ...node, draining: true } })).toBe('down')
    expect(seenAgo(30_000, { role: 'service', node, leases: 3 })).toBe('down')
  })
})
