import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Maintenance } from '../../src/handoff/maintenance.ts'
import {
  type MaintenanceResult,
  type Store,
  StoreUnavailable,
  type SweepRequest,
  type SweepResult,
} from '../../src/handoff/store.ts'
import { DAY, testPolicy } from '../store/conformance/harness.ts'

const nothing: SweepResult = { woken: 0, expired: 0, parked: 0, more: false, nextDueInMillis: null }

const SECOND = 1000

/** Answers sweeps and tidies from a list, and with nothing when it is used up. */
class QuietStore {
  readonly sweeps: { at: number; mayExpire: boolean }[] = []
  readonly tidies: number[] = []
  results: (Partial<SweepResult> | Error)[] = []
  maintenanceResults: MaintenanceResult[] = []
  maintenanceTakes: Promise<void> = Promise.resolve()
  readonly #start = performance.now()

  get now(): number {
    return Math.round(performance.now() - this.#start)
  }

  readonly sweep = async ({ mayExpireLeases }: SweepRequest): Promise<SweepResult> => {
    this.sweeps.push({ at: this.now, mayExpire: mayExpireLeases() })
    const result = this.results.shift() ?? {}
    if (result instanceof Error) throw result
    return { ...nothing, ...result }
  }

  readonly maintain = async (): Promise<MaintenanceResult> => {
    this.tidies.push(this.now)
    await this.maintenanceTakes
    return this.maintenanceResults.shift() ?? { more: false, newlyReady: 0 }
  }

  sweptWithExpiry(): number[] {
    return this.sweeps.filter(({ mayExpire }) => mayExpire).map(({ at }) => at)
  }
}

let store: QuietStore
let told: { newlyReady: number[]; parked: number[]; failed: unknown[]; looks: number[] }

beforeEach(() => {
  vi.useFakeTimers()
  store = new QuietStore()
  told = { newlyReady: [], parked: [], failed: [], looks: [] }
})

afterEach(() => {
  vi.useRealTimers()
})

const retention = { retentionMillis: 7 * DAY, auditMillis: 90 * DAY }

function maintenance(leaseMillis = testPolicy.leaseMillis): Maintenance {
  return new Maintenance(store as unknown as Store, { ...testPolicy, leaseMillis }, retention, {
    newlyReady: (count) => told.newlyReady.push(count),
    parked: (count) => told.parked.push(count),
    failed: (error) => told.failed.push(error),
  })
}

describe('the grace period after a start', () => {
  test('keeps leases from expiring for a minute, while back-offs end', async () => {
    maintenance().start()
    await vi.advanceTimersByTimeAsync(59 * SECOND)
    expect(store.sweeps.length).toBeGreaterThanOrEqual(59)
    expect(store.sweptWithExpiry()).toEqual([])
    await vi.advanceTimersByTimeAsync(2 * SECOND)
    expect(store.sweptWithExpiry()[0]).toBeGreaterThanOrEqual(60 * SECOND)
    expect(store.sweptWithExpiry()[0]).toBeLessThanOrEqual(61 * SECOND)
  })

  test('is no longer than a lease', async () => {
    maintenance(5 * SECOND).start()
    await vi.advanceTimersByTimeAsync(6 * SECOND)
    expect(store.sweptWithExpiry()[0]).toBeGreaterThanOrEqual(5 * SECOND)
  })

  test('begins again when the store was lost', async () => {
    const running = maintenance()
    running.start()
    await vi.advanceTimersByTimeAsync(90 * SECOND)
    running.beginGrace()
    const before = store.sweptWithExpiry().length
    await vi.advanceTimersByTimeAsync(59 * SECOND)
    expect(store.sweptWithExpiry()).toHaveLength(before)
    await vi.advanceTimersByTimeAsync(2 * SECOND)
    expect(store.sweptWithExpiry().length).toBeGreaterThan(before)
  })

  test('begins again when the clock was set ahead', async () => {
    maintenance().start()
    await vi.advanceTimersByTimeAsync(90 * SECOND)
    const before = store.sweptWithExpiry().length
    expect(before).toBeGreaterThan(0)
    vi.setSystemTime(Date.now() + 600 * SECOND)
    await vi.advanceTimersByTimeAsync(59 * SECOND)
    expect(store.sweptWithExpiry()).toHaveLength(before)
    await vi.advanceTimersByTimeAsync(2 * SECOND)
    expect(store.sweptWithExpiry().length).toBeGreaterThan(before)
  })
})

describe('sweeping', () => {
  test('happens when something is due, and at least every second', async () => {
    const running = maintenance()
    running.start()
    await vi.advanceTimersByTimeAsync(10)
    running.dueIn(300)
    running.dueIn(700)
    await vi.advanceTimersByTimeAsync(500)
    expect(store.sweeps.map(({ at }) => at)).toEqual([0, 310])
    await vi.advanceTimersByTimeAsync(3 * SECOND)
    expect(store.sweeps.length).toBeGreaterThanOrEqual(4)
  })

  test('continues at once while there is more, and follows the next due time of the store', async () => {
    store.results = [{ more: true }, { more: true }, { nextDueInMillis: 250 }]
    maintenance().start()
    await vi.advanceTimersByTimeAsync(10)
    expect(store.sweeps).toHaveLength(3)
    await vi.advanceTimersByTimeAsync(200)
    expect(store.sweeps).toHaveLength(3)
    await vi.advanceTimersByTimeAsync(60)
    expect(store.sweeps).toHaveLength(4)
  })

  test('does not miss an announcement that arrives during a sweep', async () => {
    const running = maintenance()
    let announce = true
    const sweep = store.sweep
    Object.assign(store, {
      sweep: async (request: SweepRequest) => {
        if (announce) running.dueIn(100)
        announce = false
        return sweep(request)
      },
    })
    running.start()
    await vi.advanceTimersByTimeAsync(150)
    expect(store.sweeps.map(({ at }) => at)).toEqual([0, 100])
  })

  test('reports what became ready and what was parked', async () => {
    store.results = [{ woken: 3, parked: 2, expired: 2 }, { woken: 0 }]
    maintenance().start()
    await vi.advanceTimersByTimeAsync(10)
    expect(told).toMatchObject({ newlyReady: [3], parked: [2], failed: [] })
  })

  test('reports a failing store, and tries again', async () => {
    store.results = [new StoreUnavailable('store_unavailable', 'gone'), { woken: 1 }]
    maintenance().start()
    await vi.advanceTimersByTimeAsync(1100)
    expect(told.failed).toHaveLength(1)
    expect(told.newlyReady).toEqual([1])
  })
})

describe('background work', () => {
  test('happens every ten seconds, and again at once while there is more', async () => {
    store.maintenanceResults = [
      { more: true, newlyReady: 4 },
      { more: false, newlyReady: 0 },
    ]
    maintenance().start()
    await vi.advanceTimersByTimeAsync(500)
    expect(store.tidies).toHaveLength(2)
    expect(told.newlyReady).toEqual([4])
    await vi.advanceTimersByTimeAsync(20_000)
    expect(store.tidies).toHaveLength(4)
  })

  test('reports a failing part, and continues the rest', async () => {
    const failure = new Error('broken')
    store.maintenanceResults = [{ more: true, newlyReady: 4, failure }]
    maintenance().start()
    await vi.advanceTimersByTimeAsync(500)
    expect(told).toMatchObject({ failed: [failure], newlyReady: [4] })
    expect(store.tidies).toHaveLength(2)
  })

  test('follows up at once on a control request that left work', async () => {
    const running = maintenance()
    running.start()
    await vi.advanceTimersByTimeAsync(400)
    running.maintainNow()
    await vi.advanceTimersByTimeAsync(10)
    expect(store.tidies).toEqual([0, 400])
  })

  test('that is running follows up afterwards on a control request that leaves work meanwhile', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    store.maintenanceTakes = promise
    const running = maintenance()
    running.start()
    await vi.advanceTimersByTimeAsync(100)
    running.maintainNow()
    await vi.advanceTimersByTimeAsync(100)
    expect(store.tidies).toEqual([0])
    resolve()
    await vi.advanceTimersByTimeAsync(10)
    expect(store.tidies).toEqual([0, 200])
  })
})

test('after a stop nothing more happens, and running work has ended', async () => {
  const running = maintenance()
  running.start()
  await vi.advanceTimersByTimeAsync(1500)
  await running.stop()
  const [sweeps, tidies] = [store.sweeps.length, store.tidies.length]
  running.dueIn(0)
  running.maintainNow()
  await vi.advanceTimersByTimeAsync(10_000)
  expect([store.sweeps.length, store.tidies.length]).toEqual([sweeps, tidies])
  expect(vi.getTimerCount()).toBe(0)
})
