import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { HandOff } from '../../src/handoff/hand-off.ts'
import { Outage } from '../../src/handoff/outage.ts'
import { formatLeaseId } from '../../src/handoff/rules/lease-id.ts'
import { expiryGraceMillis } from '../../src/handoff/rules/policy.ts'
import {
  type CallBackOrder,
  type HandOffBatch,
  type Store,
  StoreUnavailable,
  type SweepOrder,
} from '../../src/handoff/store.ts'
import { callBackOrder, settlement, some } from '../store/conformance/driver.ts'
import { DAY, testPolicy } from '../store/conformance/harness.ts'

const BEGUN = 'the store cannot commit'
const ENDED = 'the store is back; leases are not taken until their holders had time to renew'

/** Holds nothing. It can be looked at also while it cannot write. */
class EmptyStore {
  canWrite = true
  readonly sweptWithExpiry: number[] = []

  /** Whatever is settled was settled before. */
  handOff = async ({ settles, callBacks, pulls }: HandOffBatch) => {
    if (callBacks.length > 0) this.#write()
    return {
      settles: settles.map(({ settlements }) => settlements.map(() => null)),
      renews: [],
      undone: 0,
      callBacks: callBacks.map(({ callBack }: CallBackOrder) => ({
        kind: 'stored' as const,
        accepted: callBack.partitions.length,
        duplicates: 0,
      })),
      pulls: pulls.map(() => ({ partitions: [], repeated: false })),
      readied: 0,
      nextDueInMillis: null,
    }
  }
  sweep = async ({ expireLeases }: SweepOrder) => {
    if (expireLeases) this.sweptWithExpiry.push(performance.now())
    return { woken: 0, expired: 0, parked: 0, more: false, nextDueInMillis: null }
  }
  tidy = async () => ({ more: false, readied: 0 })
  task = async () => null
  tasks = async () => ({ now: 0, tasks: [], next: null })
  recordSightings = async () => this.#write()
  instance = async () => null
  instances = async () => ({ instances: [], next: null })
  probe = async () => this.#write()
  close = async () => {}

  #write(): void {
    if (!this.canWrite) throw new StoreUnavailable('store_full', 'the disk is full')
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

const callBack = () => handOff.callBack(callBackOrder('a', some(0, 1)).callBack, null)
const pull = () => handOff.pull({ instance: null, batch: 1, records: null, key: null, waitMillis: 0 })

const settleAgain = () =>
  handOff.settle({
    instance: null,
    settlements: [
      { leaseId: formatLeaseId({ partition: 1, term: 1, secret: 's'.repeat(16) }), order: settlement() },
    ],
    pull: null,
  })

/** What a request is answered, when the end of a turn is all that it waits for. */
async function answered<Result>(request: Promise<Result>): Promise<Result> {
  const [result] = await Promise.all([request, vi.advanceTimersByTimeAsync(1)])
  return result
}

async function lose(): Promise<void> {
  store.canWrite = false
  await expect(answered(callBack())).rejects.toBeInstanceOf(StoreUnavailable)
  expect(told).toEqual([BEGUN])
}

describe('the end of an outage is told', () => {
  test.each<[string, () => Promise<unknown>]>([
    ['a request that stores something', callBack],
    ['a probe', () => handOff.probe()],
    ['a reading for the metrics', () => handOff.storeReadings.read()],
    [
      'a look at the instances, which writes down who was seen',
      () => handOff.instances({ after: null, limit: 1 }),
    ],
  ])('with %s', async (_, succeed) => {
    await lose()
    store.canWrite = true
    await answered(succeed())
    expect(told).toEqual([BEGUN, ENDED])
  })

  test('within seconds where nobody asks for anything', async () => {
    await lose()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(told).toEqual([BEGUN])
    store.canWrite = true
    await vi.advanceTimersByTimeAsync(5000)
    expect(told).toEqual([BEGUN, ENDED])
  })

  test('not by what only looks: a full disk can be read', async () => {
    await lose()
    await answered(pull())
    await answered(settleAgain())
    await answered(handOff.task('a'))
    await vi.advanceTimersByTimeAsync(30_000)
    expect(told).toEqual([BEGUN])
  })
})

test('the log has the reason in one line, and the stacks behind it for those who look for them', () => {
  const lines: [level: string, fields: object][] = []
  const at = (level: string) => (fields: object) => void lines.push([level, fields])
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  const outage = new Outage(log, () => {})
  const lost = new Error('the connection to PostgreSQL was lost', { cause: new Error('Query read timeout') })
  const error = new StoreUnavailable('store_unavailable', 'PostgreSQL is away', { cause: lost })
  outage.failed(error)
  outage.failed(error)
  expect(lines).toEqual([
    ['error', { code: 'store_unavailable', reason: 'PostgreSQL is away', cause: 'Query read timeout' }],
    ['debug', { err: error }],
  ])
})

test('the grace for leases begins when the store is back', async () => {
  const grace = expiryGraceMillis(testPolicy)
  await vi.advanceTimersByTimeAsync(grace + 2000)
  await lose()
  // Between two heartbeats, long after the failure that was noticed last.
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
