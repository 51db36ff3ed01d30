import { MAX_CHECKPOINT_BYTES } from '@baton/protocol'
import { describe, expect, test } from 'vitest'
import { type Driver, leaseOf, settlement, some } from './driver.ts'
import { DAY, MINUTE, type StoreHarness, storesOf, testPolicy } from './harness.ts'

export function checkpointsTopic(harness: StoreHarness): void {
  describe('checkpoints', () => {
    const open = storesOf(harness)

    const ends: [what: string, end: (store: Driver, leaseId: string) => Promise<unknown>][] = [
      ['a release', (store, leaseId) => store.settle(leaseId, { outcome: 'released' })],
      ['an undo', (store, leaseId) => store.undo(leaseId)],
      ['a failure', (store, leaseId) => store.settle(leaseId, { outcome: 'failed', retryAfterMillis: 0 })],
      ['an expiry', (store) => store.pass(testPolicy.leaseMillis).then(() => store.pass(10 * MINUTE))],
      ['a revocation', (store) => store.store.revokeLease({ taskId: 'a', level: 0, index: 0 })],
      [
        'a retry of a parked partition',
        async (store, leaseId) => {
          await store.settle(leaseId, { outcome: 'failed', final: true })
          await store.retry('a')
        },
      ],
    ]

    test.each(ends)('the last one given with a renewal comes with the lease after %s', async (_, end) => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const leaseId = await lease(store, null)
      await save(store, leaseId, 'page 1')
      await save(store, leaseId, 'page 2')
      await end(store, leaseId)
      await store.sweep()
      await lease(store, 'page 2')
    })

    test.each(ends)('one that is flushed comes with the lease after %s and a restart', async (_, end) => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const leaseId = await lease(store, null)
      await save(store, leaseId, '"ä"\n😀')
      await store.reopen()
      await end(store, leaseId)
      await store.sweep()
      await store.reopen()
      await lease(store, '"ä"\n😀')
    })

    test.each(['failed', 'released'] as const)('a settle as %s gives one, or clears it', async (outcome) => {
      const store = await open({ maxAttempts: 9 })
      await store.callBack('a', some(0, 1))
      const settle = async (leaseId: string, checkpoint?: string | null) => {
        const given = checkpoint === undefined ? {} : { checkpoint }
        expect(await store.settle(leaseId, { outcome, retryAfterMillis: 0, ...given })).toBeNull()
        await store.pass(10 * MINUTE)
      }
      await settle(await lease(store, null), 'half')
      await settle(await lease(store, 'half'))
      await store.reopen()
      await settle(await lease(store, 'half'), null)
      await store.reopen()
      await lease(store, null)
    })

    test('done clears it, and so nothing of it comes with a rerun', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const leaseId = await lease(store, null)
      await save(store, leaseId, 'half')
      expect(await store.settle(leaseId, { checkpoint: 'not kept' })).toBeNull()
      expect(await store.partition('a', 0, 0)).not.toHaveProperty('checkpoint')
      await store.retry('a', { done: true })
      await store.reopen()
      await lease(store, null)
    })

    test('a done after the expiry clears it, too', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const leaseId = await lease(store, null)
      await save(store, leaseId, 'half')
      await store.pass(testPolicy.leaseMillis)
      expect(await store.settle(leaseId)).toBeNull()
      expect(await store.partition('a', 0, 0)).not.toHaveProperty('checkpoint')
    })

    test.each(['failed', 'released'] as const)(
      'a late %s gives one until there is a newer lease',
      async (outcome) => {
        const store = await open()
        await store.callBack('a', some(0, 1))
        const leaseId = await lease(store, null)
        await store.pass(testPolicy.leaseMillis)
        expect(await store.settle(leaseId, { outcome, checkpoint: 'late' })).toBeNull()
        await store.pass(10 * MINUTE)
        await lease(store, 'late')
        expect(await store.settle(leaseId, { outcome, checkpoint: 'too late' })).toBe('lease_lost')
        expect(await store.partition('a', 0, 0)).toMatchObject({ checkpoint: 'late' })
      },
    )

    test('one that is too long refuses its lease, and the others go on', async () => {
      const store = await open()
      await store.callBack('a', some(0, 3))
      const [first, second, third] = (await store.pull({ batch: 3 })).partitions.map(
        ({ lease }) => lease?.id ?? '',
      )
      const longest = 'ä'.repeat(MAX_CHECKPOINT_BYTES / 2)
      store.clock.advance(MINUTE)
      const { renews } = await store.batch({
        renews: [
          {
            leases: [
              { ...leaseOf(first ?? ''), checkpoint: `${longest}x`, progress: { records: 1, note: null } },
              { ...leaseOf(second ?? ''), checkpoint: longest },
            ],
          },
        ],
      })
      expect(renews[0]).toMatchObject([{ refused: 'checkpoint_too_long' }, { refused: null }])
      const { settles } = await store.batch({
        settles: [
          {
            instance: null,
            settlements: [
              {
                lease: leaseOf(first ?? ''),
                reported: settlement({ outcome: 'failed', checkpoint: `${longest}x` }),
              },
              { lease: leaseOf(third ?? ''), reported: settlement({ outcome: 'released' }) },
            ],
          },
        ],
      })
      expect(settles[0]).toEqual(['checkpoint_too_long', null])
      const [one, two] = await store.partitions('a')
      expect(one).toMatchObject({
        state: 'leased',
        dueAt: store.clock.now() - MINUTE + testPolicy.leaseMillis,
      })
      expect(one).not.toHaveProperty('progress')
      expect(two).toMatchObject({ checkpoint: longest })
      expect(await store.settle(first ?? '', { checkpoint: `${longest}x` })).toBeNull()
    })

    test('a pull with a key repeats the one that came with the lease', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      await store.settle(await lease(store, null), { outcome: 'released', checkpoint: 'half' })
      await lease(store, 'half', 'k')
      await lease(store, 'half', 'k')
    })

    test('are purged with their partitions', async () => {
      const store = await open()
      await store.callBack('a', some(0, 2))
      const leaseId = await lease(store, null)
      await save(store, leaseId, 'half')
      await store.settle(leaseId, { outcome: 'failed', final: true })
      await store.control({ verb: 'cancel', taskId: 'a' })
      store.clock.advance(8 * DAY)
      await store.maintainAll()
      expect((await store.task('a')).facts.purgedAt).not.toBeNull()
    })
  })

  describe('progress', () => {
    const open = storesOf(harness)

    test('is shown while the lease runs, and a restart forgets it', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne({ instance: 'w' })
      const report = (records: number | null, note: string | null) =>
        store.batch({ renews: [{ leases: [{ ...leaseOf(leaseId), progress: { records, note } }] }] })
      await report(40, 'reading')
      store.clock.advance(MINUTE)
      await store.renew(leaseId)
      expect(await store.partition('a', 0, 0)).toMatchObject({
        progress: { records: 40, note: 'reading', at: store.clock.now() - MINUTE },
      })
      await report(80, null)
      const shown = { records: 80, note: null, at: store.clock.now() }
      const held = await store.store.instanceLeases({ instanceId: 'w', after: null, limit: 10 })
      expect(held.leases).toMatchObject([{ progress: shown }])
      const { timing } = await store.task('a')
      expect(timing?.underWay).toMatchObject([{ progress: shown }])
      await store.reopen()
      expect(await store.partition('a', 0, 0)).not.toHaveProperty('progress')
    })

    test('ends with the lease', async () => {
      const store = await open()
      await store.callBack('a', some(0, 1))
      const { leaseId } = await store.pullOne()
      await store.batch({
        renews: [{ leases: [{ ...leaseOf(leaseId), progress: { records: 1, note: null } }] }],
      })
      await store.settle(leaseId, { outcome: 'released' })
      expect(await store.partition('a', 0, 0)).not.toHaveProperty('progress')
      await store.pullOne()
      expect(await store.partition('a', 0, 0)).not.toHaveProperty('progress')
    })
  })
}

/** Pulls one partition, which must come with this checkpoint. */
async function lease(store: Driver, checkpoint: string | null, key: string | null = null): Promise<string> {
  const pulled = await store.pullOne({ key })
  expect(pulled.lease?.checkpoint).toBe(checkpoint)
  return pulled.leaseId
}

async function save(store: Driver, leaseId: string, checkpoint: string): Promise<void> {
  const { renews } = await store.batch({ renews: [{ leases: [{ ...leaseOf(leaseId), checkpoint }] }] })
  expect(renews[0]).toMatchObject([{ refused: null }])
  expect(await store.partition('a', 0, 0)).toMatchObject({ checkpoint })
}
