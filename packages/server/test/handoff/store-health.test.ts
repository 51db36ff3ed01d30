import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { HandOff } from '../../src/handoff/hand-off.ts'
import { formatLeaseId } from '../../src/handoff/lease-id.ts'
import { expiryGraceMillis } from '../../src/handoff/rules/policy.ts'
import {
  type BatchedCallBack,
  type ClusterOfStore,
  type HandOffBatch,
  LeaderUnavailable,
  type Store,
  StoreUnavailable,
  type SweepRequest,
} from '../../src/handoff/store.ts'
import { StoreHealth } from '../../src/handoff/store-health.ts'
import { batchedCallBack, batchedPull, settlement, some } from '../store/conformance/driver.ts'
import { DAY, testPolicy } from '../store/conformance/harness.ts'

const BEGUN = 'the store cannot commit'
const ENDED = 'the store is available again; no lease expires during the grace period'

/** An empty store. It can be read even while it cannot write. */
class EmptyStore {
  canWrite = true
  whyNot: StoreUnavailable['code'] = 'store_unavailable'
  /** The error for call-backs, and for requests that name leases. */
  hasRoom = { callBacks: true, leases: true }
  /** Disk space is low, and reserved for finishing existing work. */
  refusesEarly = false
  /** Sweeps wait for this, as behind a request that the store has not answered. */
  sweepsWait: Promise<void> = Promise.resolve()
  readonly sweptWithExpiry: number[] = []
  /** Tells the hand-off whether this node leads. */
  lead: (leads: boolean) => void = () => undefined
  readonly cluster: ClusterOfStore = {
    leads: () => true,
    onLeadership: (listener) => {
      this.lead = listener
    },
    waitShare: 0,
  }

  /** Every settlement was settled before. */
  runsAlone = () => false
  runBatch = async ({ settles, callBacks, pulls }: HandOffBatch) => {
    if (callBacks.length > 0) this.#write()
    const fits =
      (callBacks.length === 0 || this.hasRoom.callBacks) && (settles.length === 0 || this.hasRoom.leases)
    if (!fits) throw new StoreUnavailable('store_full', 'the disk is full')
    return {
      settles: settles.map(({ settlements }) => settlements.map(() => null)),
      renews: [],
      undone: 0,
      callBacks: callBacks.map(({ callBack }: BatchedCallBack) =>
        this.refusesEarly
          ? { kind: 'store_full' as const }
          : { kind: 'stored' as const, accepted: callBack.partitions.length, duplicates: 0 },
      ),
      pulls: pulls.map(() => ({ partitions: [], repeated: false })),
      newlyReady: 0,
      nextDueInMillis: null,
    }
  }
  sweep = async ({ mayExpireLeases }: SweepRequest) => {
    await this.sweepsWait
    if (mayExpireLeases()) this.sweptWithExpiry.push(performance.now())
    return { woken: 0, expired: 0, parked: 0, more: false, nextDueInMillis: null }
  }
  maintain = async () => ({ more: false, newlyReady: 0 })
  task = async () => null
  tasks = async () => ({ now: 0, tasks: [], next: null })
  recordHeartbeats = async () => this.#write()
  instance = async () => null
  instances = async () => ({ instances: [], next: null })
  activeInstances = async () => []
  probe = async () => this.#write()
  close = async () => {}

  #write(): void {
    if (!this.canWrite) throw new StoreUnavailable(this.whyNot, 'nothing can be written')
  }
}

let store: EmptyStore
let handOff: HandOff
let told: string[]

beforeEach(async () => {
  vi.useFakeTimers()
  store = new EmptyStore()
  told = []
  const tell = (_fields: object, text: string) => void told.push(text)
  handOff = new HandOff({
    store: store as unknown as Store,
    policy: testPolicy,
    retentionMillis: DAY,
    node: { instanceId: 'node', version: '0' },
    log: { debug() {}, info: tell, warn: tell, error: tell },
  })
  await handOff.start()
})

afterEach(async () => {
  await handOff.stop()
  vi.useRealTimers()
})

const callBack = () => handOff.callBack(batchedCallBack('a', some(0, 1)).callBack, null)
const pull = () => handOff.pull({ ...batchedPull(), waitMillis: 0 })

const settleAgain = () =>
  handOff.settle({
    instance: null,
    settlements: [
      {
        leaseId: formatLeaseId({ partition: 1, leaseNumber: 1, secret: 's'.repeat(16) }),
        reported: settlement(),
      },
    ],
    pull: null,
  })

/** The answer to a request that only waits for the end of an event-loop iteration. */
async function answered<Result>(request: Promise<Result>): Promise<Result> {
  const [result] = await Promise.all([request, vi.advanceTimersByTimeAsync(1)])
  return result
}

async function lose(): Promise<void> {
  store.canWrite = false
  await expect(answered(callBack())).rejects.toBeInstanceOf(StoreUnavailable)
  expect(told).toEqual([BEGUN])
}

test('a leader change is logged as a warning that says what happens next; a store that cannot commit as an error', () => {
  const lines: string[] = []
  const at = (level: string) => (_fields: object, text: string) => void lines.push(`${level}: ${text}`)
  let graces = 0
  const log = { debug() {}, info: at('info'), warn: at('warn'), error: at('error') }
  const storeHealth = new StoreHealth(log, () => {
    graces += 1
  })
  storeHealth.failed(new LeaderUnavailable('it went away'))
  storeHealth.failed(new LeaderUnavailable('it went away'))
  const changed =
    'warn: the leader is unavailable or has changed: requests in progress are answered with 503, other requests wait for the next leader'
  expect(lines).toEqual([changed])
  storeHealth.failed(new StoreUnavailable('store_unavailable', 'PostgreSQL is away'))
  storeHealth.failed(new LeaderUnavailable('it went away'))
  expect(lines).toEqual([changed, `error: ${BEGUN}`])
  storeHealth.recovered()
  storeHealth.recovered()
  expect(lines).toEqual([changed, `error: ${BEGUN}`, `info: ${ENDED}`])
  expect(graces).toBe(5)
})

describe('the end of an outage is logged', () => {
  test.each<[string, () => Promise<unknown>]>([
    ['a request that stores something', callBack],
    ['a probe', () => handOff.probe()],
    ['a reading for the metrics', () => handOff.storeReadings.read()],
    [
      'a request for the instances, which stores who was seen',
      () => handOff.instances({ after: null, limit: 1 }),
    ],
  ])('with %s', async (_, succeed) => {
    await lose()
    store.canWrite = true
    await answered(succeed())
    expect(told).toEqual([BEGUN, ENDED])
  })

  test('within seconds without any request', async () => {
    await lose()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(told).toEqual([BEGUN])
    store.canWrite = true
    await vi.advanceTimersByTimeAsync(5000)
    expect(told).toEqual([BEGUN, ENDED])
  })

  test('not after reads only: a disk that accepts no writes can be read', async () => {
    await lose()
    await answered(pull())
    await answered(settleAgain())
    await answered(handOff.views.task('a'))
    await vi.advanceTimersByTimeAsync(30_000)
    expect(told).toEqual([BEGUN])
  })
})

test('the log has the reason in one line, and the stack traces at level debug', () => {
  const lines: [level: string, fields: object][] = []
  const at = (level: string) => (fields: object) => void lines.push([level, fields])
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  const storeHealth = new StoreHealth(log, () => {})
  const lost = new Error('the connection to PostgreSQL was lost', { cause: new Error('Query read timeout') })
  const error = new StoreUnavailable('store_unavailable', 'PostgreSQL is away', { cause: lost })
  storeHealth.failed(error)
  storeHealth.failed(error)
  expect(lines).toEqual([
    ['error', { code: 'store_unavailable', reason: 'PostgreSQL is away', cause: 'Query read timeout' }],
    ['debug', { err: error }],
  ])
})

test('the grace period of leases begins when the store is back', async () => {
  const grace = expiryGraceMillis(testPolicy)
  await vi.advanceTimersByTimeAsync(grace + 2000)
  await lose()
  // Between two heartbeats, long after the last failure was noticed.
  await vi.advanceTimersByTimeAsync(4000)
  store.canWrite = true
  await answered(handOff.probe())
  const back = performance.now()
  expect(told).toEqual([BEGUN, ENDED])
  store.sweptWithExpiry.length = 0
  await vi.advanceTimersByTimeAsync(grace + 2000)
  const [first = 0] = store.sweptWithExpiry
  expect(first - back).toBeGreaterThanOrEqual(grace - 1)
  expect(first - back).toBeLessThanOrEqual(grace + 1001)
})

test('the grace period of leases begins when a node takes over that was idle and missed nothing', async () => {
  const grace = expiryGraceMillis(testPolicy)
  await vi.advanceTimersByTimeAsync(grace + 2000)
  expect(store.sweptWithExpiry).not.toEqual([])
  store.lead(true)
  store.sweptWithExpiry.length = 0
  await vi.advanceTimersByTimeAsync(grace - 1)
  expect(store.sweptWithExpiry).toEqual([])
  await vi.advanceTimersByTimeAsync(2000)
  expect(store.sweptWithExpiry).not.toEqual([])
})

test('a sweep that was requested before an outage and runs after it ends no lease', async () => {
  const grace = expiryGraceMillis(testPolicy)
  await vi.advanceTimersByTimeAsync(grace + 2000)
  const answers = Promise.withResolvers<void>()
  store.sweepsWait = answers.promise
  await vi.advanceTimersByTimeAsync(2000)
  await lose()
  store.canWrite = true
  await answered(handOff.probe())
  expect(told).toEqual([BEGUN, ENDED])
  store.sweptWithExpiry.length = 0
  answers.resolve()
  await vi.advanceTimersByTimeAsync(grace - 3000)
  expect(store.sweptWithExpiry).toEqual([])
})

describe('call-backs without disk space', () => {
  const SHORT = 'the store has no free space: requests that do not fit are refused'
  const ENOUGH = 'the store has free space again'
  const grace = expiryGraceMillis(testPolicy)

  beforeEach(async () => {
    await vi.advanceTimersByTimeAsync(grace + 2000)
    store.hasRoom.callBacks = false
    store.sweptWithExpiry.length = 0
  })

  /** In addition to heartbeats and probes, which are written all the time. */
  async function callBackFor(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      await expect(answered(callBack())).rejects.toMatchObject({ code: 'store_full' })
      await answered(handOff.probe())
      await vi.advanceTimersByTimeAsync(998)
    }
  }

  test('do not keep leases from expiring', async () => {
    await callBackFor(30)
    expect(store.sweptWithExpiry.length).toBeGreaterThanOrEqual(29)
  })

  test('are logged once, and once more when there is space again', async () => {
    await callBackFor(30)
    // Some call-backs are smaller than others, and fit.
    store.hasRoom.callBacks = true
    await answered(callBack())
    store.hasRoom.callBacks = false
    await callBackFor(30)
    expect(told).toEqual([SHORT])
    store.hasRoom.callBacks = true
    await vi.advanceTimersByTimeAsync(60_000)
    await answered(callBack())
    await answered(callBack())
    expect(told).toEqual([SHORT, ENOUGH])
  })

  test('are logged again when it happens again, also without a call-back in between', async () => {
    await callBackFor(2)
    await vi.advanceTimersByTimeAsync(60_000)
    await callBackFor(2)
    expect(told).toEqual([SHORT, SHORT])
  })

  test('are also logged if the store refuses them before the disk is full', async () => {
    store.hasRoom.callBacks = true
    store.refusesEarly = true
    await callBackFor(30)
    expect(told).toEqual([SHORT])
    store.refusesEarly = false
    await vi.advanceTimersByTimeAsync(60_000)
    await answered(callBack())
    expect(told).toEqual([SHORT, ENOUGH])
  })

  test('do not prevent a settlement at the same time', async () => {
    const [refused, settled] = await answered(Promise.allSettled([callBack(), settleAgain()]))
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'store_full' } })
    expect(settled).toMatchObject({ status: 'fulfilled' })
  })

  test('are an outage if there is no space for a heartbeat either', async () => {
    store.whyNot = 'store_full'
    store.canWrite = false
    await vi.advanceTimersByTimeAsync(5000)
    expect(told).toEqual([BEGUN])
    store.canWrite = true
    await vi.advanceTimersByTimeAsync(5000)
    expect(told).toEqual([BEGUN, ENDED])
  })

  test('give leases their grace period if there is no space for settlements either', async () => {
    store.hasRoom.leases = false
    await expect(answered(settleAgain())).rejects.toMatchObject({ code: 'store_full' })
    const refusedAt = performance.now()
    store.sweptWithExpiry.length = 0
    await vi.advanceTimersByTimeAsync(grace + 2000)
    expect((store.sweptWithExpiry[0] ?? 0) - refusedAt).toBeGreaterThanOrEqual(grace - 1)
    expect(told).toEqual([SHORT])
  })
})
