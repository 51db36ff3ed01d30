import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readFleet } from '../../src/handoff/counts/store-readings.ts'
import type {
  ActiveInstancesQuery,
  InstanceDetails,
  InstancePage,
  InstanceQuery,
} from '../../src/handoff/views/queries.ts'
import { leasesToFinishIn } from '../../src/handoff/views/time-left.ts'
import { anInstance } from '../disk/conformance/builders.ts'

describe('the leases that finish in time', () => {
  test('match the number that the time left is computed with', () => {
    const positive = fc.double({ min: 1, max: 1e9, noNaN: true })
    fc.assert(
      fc.property(positive, positive, positive, (millis, attemptMillis, withinMillis) => {
        const leases = leasesToFinishIn({ millis, attemptMillis }, withinMillis)
        if (leases === Number.POSITIVE_INFINITY) return withinMillis <= attemptMillis / 2
        if (leases <= 1) return millis <= withinMillis * (1 + 1e-9)
        const takes = millis / leases + (attemptMillis / 2) * (1 - 1 / leases)
        return Math.abs(takes - withinMillis) <= withinMillis * 1e-6
      }),
    )
  })

  test('finish attempts of different lengths in about that time', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 500, max: 1500 }), { minLength: 50, maxLength: 400 }),
        fc.integer({ min: 5000, max: 60_000 }),
        (attempts, withinMillis) => {
          const millis = attempts.reduce((sum, one) => sum + one, 0)
          const effort = { millis, attemptMillis: millis / attempts.length }
          const workers = Math.max(1, Math.ceil(leasesToFinishIn(effort, withinMillis)))
          // One and a half attempts more: the last one begins late and may be long.
          return makespan(attempts, workers) <= withinMillis + 1500
        },
      ),
    )
  })
})

/** Each worker takes the next partition when it has finished one. */
function makespan(attempts: readonly number[], workers: number): number {
  const busyUntil = new Array<number>(workers).fill(0)
  for (const attempt of attempts) {
    const next = busyUntil.indexOf(Math.min(...busyUntil))
    busyUntil[next] = (busyUntil[next] ?? 0) + attempt
  }
  return Math.max(...busyUntil)
}

describe('the fleet', () => {
  const instance = (at: number, changed: Partial<InstanceDetails> = {}): InstanceDetails =>
    anInstance({
      instanceId: `w${String(at).padStart(3, '0')}`,
      firstSeenAt: 0,
      lastSeenAt: 1000,
      now: 1000,
      ...changed,
    })
  const paged = (all: readonly InstanceDetails[]) => {
    const asked: (InstanceQuery | ActiveInstancesQuery)[] = []
    const activeInstances = async (query: ActiveInstancesQuery): Promise<string[]> => {
      asked.push(query)
      return all.slice(0, query.limit).map(({ instanceId }) => instanceId)
    }
    const instances = async (query: InstanceQuery): Promise<InstancePage> => {
      asked.push(query)
      return { instances: all.filter(({ instanceId }) => query.names?.includes(instanceId)), next: null }
    }
    return { asked, activeInstances, instances }
  }

  test('is read page by page, without producers and nodes; the active instances are found once', async () => {
    const store = paged([
      instance(1),
      instance(2, { leases: 3 }),
      instance(3, { role: 'producer' }),
      instance(4, { role: 'service', node: { version: '1', startedAt: 0, draining: false, load: 12 } }),
      instance(5, { lostUnlessSeenSince: 1001 }),
      instance(6, { leases: 1, silentAfterMillis: 30_000, now: 40_000 }),
    ])
    const fleet = await readFleet(store, { perPage: 2 })
    expect([...fleet.holders]).toEqual([
      ['w002', 3],
      ['w006', 1],
    ])
    expect([...fleet.lost]).toEqual([['w005', 0]])
    expect(fleet).toMatchObject({ idle: 1, isComplete: true })
    expect(store.asked).toEqual([
      { activeMillis: 90_000, limit: 5001 },
      { after: null, limit: 2, names: ['w001', 'w002'] },
      { after: null, limit: 2, names: ['w003', 'w004'] },
      { after: null, limit: 2, names: ['w005', 'w006'] },
    ])
  })

  test('is reported as incomplete when it is larger than what is read', async () => {
    const all = Array.from({ length: 10 }, (_, at) => instance(at))
    expect(await readFleet(paged(all), { most: 9, perPage: 4 })).toMatchObject({
      idle: 9,
      isComplete: false,
    })
    expect(await readFleet(paged(all), { most: 10, perPage: 4 })).toMatchObject({
      idle: 10,
      isComplete: true,
    })
  })
})
