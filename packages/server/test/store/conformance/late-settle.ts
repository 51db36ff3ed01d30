import { describe, expect, test } from 'vitest'
import { type Driver, nameOf, some } from './driver.ts'
import { MINUTE, type StoreHarness, storesOf, testPolicy } from './harness.ts'

type LateLeaseState = 'delayed' | 'ready' | 'held' | 'parked'

/** Pulls the only partition, lets the lease expire, and puts the partition into the given state. */
async function expired(store: Driver, leaseState: LateLeaseState): Promise<string> {
  await store.callBack('a', some(0, 1))
  const { leaseId } = await store.pullOne()
  await store.pass(testPolicy.leaseMillis)
  if (leaseState === 'ready' || leaseState === 'held') await store.pass(20 * MINUTE)
  if (leaseState === 'held') await store.control({ verb: 'pause', taskId: 'a' })
  expect(await store.states('a')).toEqual({ '0-0': leaseState })
  return leaseId
}

export function lateSettleTopic(harness: StoreHarness): void {
  describe('late settles, while no newer lease exists', () => {
    const open = storesOf(harness)

    for (const leaseState of ['delayed', 'ready', 'held', 'parked'] as const) {
      const policy = { maxAttempts: leaseState === 'parked' ? 1 : 3 }

      test(`done is accepted from ${leaseState}`, async () => {
        const store = await open(policy)
        const leaseId = await expired(store, leaseState)
        expect(await store.settle(leaseId, { records: 100 })).toBeNull()
        expect(await store.states('a')).toEqual({ '0-0': 'done' })
        // The expiry has counted the attempt.
        expect((await store.partition('a', 0, 0)).attempts).toBe(1)
        expect(await store.settle(leaseId)).toBeNull()
        await store.pass(60 * MINUTE)
        expect((await store.pull()).partitions).toEqual([])
      })

      test(`failed from ${leaseState} records its reason and uses up no second attempt`, async () => {
        const store = await open(policy)
        const leaseId = await expired(store, leaseState)
        expect(await store.settle(leaseId, { outcome: 'failed', reason: 'out of memory' })).toBeNull()
        expect(await store.states('a')).toEqual({ '0-0': leaseState })
        expect(await store.partition('a', 0, 0)).toMatchObject({ attempts: 1, reason: 'out of memory' })
        expect((await store.task('a')).facts.attemptsWasted).toBe(1)
        expect(await store.settle(leaseId)).toBe('lease_settled')
      })

      test(`failed as final from ${leaseState} parks`, async () => {
        const store = await open(policy)
        const leaseId = await expired(store, leaseState)
        expect(await store.settle(leaseId, { outcome: 'failed', reason: 'bad', final: true })).toBeNull()
        expect(await store.states('a')).toEqual({ '0-0': 'parked' })
        await store.control({ verb: 'resume', taskId: 'a' })
        await store.pass(60 * MINUTE)
        expect((await store.pull()).partitions).toEqual([])
      })

      test(`released from ${leaseState} changes nothing`, async () => {
        const store = await open(policy)
        const leaseId = await expired(store, leaseState)
        const before = await store.partition('a', 0, 0)
        expect(await store.settle(leaseId, { outcome: 'released' })).toBeNull()
        expect(await store.partition('a', 0, 0)).toEqual(before)
      })

      test(`renew from ${leaseState} revives the lease as the same attempt`, async () => {
        const store = await open(policy)
        const leaseId = await expired(store, leaseState)
        expect(await store.renew(leaseId)).toMatchObject([
          { refused: null, expiresInMillis: testPolicy.leaseMillis },
        ])
        expect(await store.states('a')).toEqual({ '0-0': 'leased' })
        expect((await store.task('a')).facts.attemptsWasted).toBe(0)
        expect(await store.settle(leaseId, { outcome: 'failed', retryAfterMillis: 0 })).toBeNull()
        expect(await store.partition('a', 0, 0)).toMatchObject({ attempts: 1 })
      })
    }

    test('a renewal withdraws one attempt, unless an operator reset them meanwhile', async () => {
      const store = await open({ maxAttempts: 2 })
      await store.callBack('a', some(0, 1))
      await store.settle((await store.pullOne()).leaseId, { outcome: 'failed', retryAfterMillis: 0 })
      await store.sweep()
      const { leaseId } = await store.pullOne()
      for (const attempts of [1, 0]) {
        await store.pass(testPolicy.leaseMillis)
        expect(await store.partition('a', 0, 0)).toMatchObject({ state: 'parked', attempts: 2 })
        if (attempts === 0) await store.retry('a')
        await store.renew(leaseId)
        expect(await store.partition('a', 0, 0)).toMatchObject({ state: 'leased', attempts })
      }
    })

    test('a late settle of a partition that is already ready wakes no pull', async () => {
      const store = await open({ maxAttempts: 3 })
      const lease = { id: await expired(store, 'ready') }
      const answers = await store.settleAll([{ lease }], { outcome: 'failed', reason: 'out of memory' })
      expect(answers).toMatchObject({ settles: [[null]], newlyReady: 0 })
    })

    const lastWords: [string, (store: Driver, leaseId: string) => Promise<unknown>, string][] = [
      ['done', (store, leaseId) => store.settle(leaseId), 'done'],
      [
        'failed for good',
        (store, leaseId) => store.settle(leaseId, { outcome: 'failed', final: true }),
        'parked',
      ],
      ['renew', (store, leaseId) => store.renew(leaseId), 'leased'],
    ]
    for (const [word, say, state] of lastWords)
      test(`${word}: a partition that was known to be next is not handed out any more`, async () => {
        const store = await open()
        await store.callBack('a', some(1, 1))
        const { leaseId } = await store.pullOne()
        await store.pass(testPolicy.leaseMillis)
        await store.pass(20 * MINUTE)
        await store.callBack('b', some(0, 1))
        expect((await store.pull()).partitions.map(nameOf)).toEqual(['b-0-0'])
        await say(store, leaseId)
        expect((await store.pull()).partitions).toEqual([])
        expect(await store.states('a')).toEqual({ '1-0': state })
      })

    test('after a newer lease the old one is lost, whatever the outcome', async () => {
      const store = await open()
      const old = await expired(store, 'ready')
      const { leaseId } = await store.pullOne()
      for (const outcome of ['done', 'failed', 'released'] as const)
        expect(await store.settle(old, { outcome })).toBe('lease_lost')
      expect(await store.renew(old)).toEqual([{ refused: 'lease_lost' }])
      expect(await store.undo(old)).toBe(0)
      expect(await store.settle(leaseId)).toBeNull()
      expect(await store.settle(old)).toBe('lease_lost')
    })

    test('an expired lease that was not swept is settled as if in time', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      store.clock.advance(5 * testPolicy.leaseMillis)
      expect(await store.settle(leaseId, { outcome: 'failed' })).toBeNull()
      expect(await store.partition('a', 0, 0)).toMatchObject({ state: 'delayed', attempts: 1 })
    })

    test('leases that were revived and then released do not overtake others', async () => {
      const store = await open()
      await store.callBack('a', some(0, 5, { recordCount: 1000 }))
      const { partitions } = await store.pull({ batch: 5 })
      const leaseIds = partitions.map(({ lease }) => lease?.id ?? '')
      await store.pass(testPolicy.leaseMillis)
      await store.renew(...leaseIds)
      await store.callBack('b', some(0, 20, { recordCount: 1000 }))
      for (const leaseId of leaseIds) await store.settle(leaseId, { outcome: 'released' })
      const next = (await store.pull({ batch: 6 })).partitions.map(({ taskId }) => taskId)
      expect(next.filter((taskId) => taskId === 'b').length).toBeGreaterThanOrEqual(2)
    })
  })
}
