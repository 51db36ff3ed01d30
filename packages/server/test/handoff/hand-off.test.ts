import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { quiet } from '../../../../test/support/quiet-log.ts'
import { HandOff } from '../../src/handoff/hand-off.ts'
import { type PullRequest, StoreUnavailable } from '../../src/handoff/store.ts'
import { batchedCallBack, batchedPull, nameOf, settlement, some } from '../store/conformance/driver.ts'
import { DAY, type StoreUnderTest, TestClock, testPolicy } from '../store/conformance/harness.ts'
import { memoryHarness } from '../store/memory-harness.ts'

const LONG = 600_000

let under: StoreUnderTest
let handOff: HandOff
/** The deliverer stops when this is resolved. */
let delivererMayStop: PromiseWithResolvers<void>
let calls: string[]

beforeEach(async () => {
  under = await memoryHarness().open({ policy: testPolicy, clock: new TestClock() })
  const node = { instanceId: 'node', version: '0' }
  calls = []
  delivererMayStop = Promise.withResolvers<void>()
  const deliverer = {
    start: async () => void calls.push('start'),
    stop: async () => {
      calls.push('stop')
      await delivererMayStop.promise
      calls.push('stopped')
    },
  }
  handOff = new HandOff({
    store: under.store,
    policy: testPolicy,
    retentionMillis: DAY,
    node,
    log: quiet,
    deliverer,
  })
  await handOff.start()
})

afterEach(async () => {
  delivererMayStop.resolve()
  await handOff.stop()
  await under.dispose()
})

const pullRequest = (changes: Partial<PullRequest> = {}): PullRequest => ({
  ...batchedPull(),
  waitMillis: 0,
  ...changes,
})
const callBack = (count: number, taskId = 'a') =>
  handOff.callBack(batchedCallBack(taskId, some(0, count)).callBack, 'producer')
const pull = (changes?: Partial<PullRequest>) => handOff.pull(pullRequest(changes))
const pullOne = async () => (await pull()).partitions[0]?.lease?.id ?? ''

/** Waits until this many pulls wait: what follows must find them waiting. */
async function untilWaiting(count: number): Promise<void> {
  while (handOff.waitingPulls < count) await new Promise((resolve) => setImmediate(resolve))
}

describe('a pull that waits', () => {
  test('waits no longer than asked, however long the first try takes', async () => {
    const run = under.store.runBatch.bind(under.store)
    under.store.runBatch = async (batch) => {
      await new Promise((resolve) => setTimeout(resolve, 50))
      return run(batch)
    }
    expect(await pull({ waitMillis: 40 })).toEqual({ partitions: [], repeated: false, waited: false })
  })

  test('is woken by a release, by an undone pull, and by a resumed task', async () => {
    await callBack(1)
    const leaseId = await pullOne()
    const first = pull({ waitMillis: LONG })
    await untilWaiting(1)
    const released = { leaseId, reported: settlement({ outcome: 'released' }) }
    await handOff.settle({ instance: null, settlements: [released], pull: null })
    const second = pull({ waitMillis: LONG })
    await untilWaiting(1)
    handOff.undo((await first).partitions)
    await second
    await callBack(1, 'b')
    await handOff.control({ verb: 'pause', taskId: 'b' })
    const third = pull({ waitMillis: LONG })
    await untilWaiting(1)
    await handOff.control({ verb: 'resume', taskId: 'b' })
    expect((await third).partitions.map(nameOf)).toEqual(['b-0-0'])
  })
})

describe('settling', () => {
  test('looks at each parked lease once, however many there are', async () => {
    const { store } = under
    const run = store.runBatch.bind(store)
    let looks = 0
    store.runBatch = async (batch) => {
      const answers = await run(batch)
      if (answers.parked === undefined) return answers
      const get = (ids: readonly string[], at: string | symbol) => {
        if (typeof at === 'string' && at !== 'length') looks += 1
        return Reflect.get(ids, at)
      }
      return { ...answers, parked: new Proxy(answers.parked, { get }) }
    }
    await callBack(200)
    const { partitions } = await pull({ batch: 200 })
    const reported = settlement({ outcome: 'failed', final: true })
    const settlements = partitions.map(({ lease }) => ({ leaseId: lease?.id ?? '', reported }))
    const { parked } = await handOff.settle({ instance: null, settlements, pull: null })
    expect(parked).toHaveLength(200)
    expect(looks).toBeLessThanOrEqual(200)
  })
})

describe('when the store becomes unavailable while a pull waits', () => {
  const away = new StoreUnavailable('store_unavailable', 'the store is away')
  const goAwayForPulls = () => {
    const answer = under.store.runBatch.bind(under.store)
    under.store.runBatch = async (batch) => {
      if (batch.pulls.length > 0) throw away
      return answer(batch)
    }
  }

  test('a settle that also pulls is answered, because it has settled', async () => {
    await callBack(1)
    const settlements = [{ leaseId: await pullOne(), reported: settlement() }]
    const settling = handOff.settle({ instance: null, settlements, pull: pullRequest({ waitMillis: LONG }) })
    await untilWaiting(1)
    goAwayForPulls()
    await callBack(1, 'b')
    expect(await settling).toMatchObject({ settled: [settlements[0]?.leaseId], pulled: { partitions: [] } })
  })
})

describe('draining', () => {
  test('stops the deliverer at the same time, and the store is closed after it', async () => {
    const { store } = under
    const close = store.close.bind(store)
    store.close = async () => {
      calls.push('closed')
      await close()
    }
    handOff.drain()
    expect(calls).toEqual(['start', 'stop'])
    await callBack(1)
    const stopped = handOff.stop()
    delivererMayStop.resolve()
    await stopped
    expect(calls).toEqual(['start', 'stop', 'stopped', 'closed'])
  })
})

test('a control request in several steps is answered once, with everything it changed', async () => {
  const partitions = [0, 1, 2].flatMap((level) => some(level, 900))
  await handOff.callBack(batchedCallBack('a', partitions).callBack, null)
  expect(await handOff.control({ verb: 'cancel', taskId: 'a' })).toMatchObject({
    kind: 'applied',
    state: 'cancelled',
    changed: 2700,
    more: false,
  })
  const task = await handOff.views.task('a')
  expect(task?.facts.partitions.cancelled).toBe(2700)
})
