import { expect, test } from 'vitest'
import { MemoryDisk } from '../../../src/disk/memory/memory-disk.ts'
import { MemoryMedium } from '../../../src/disk/memory/memory-medium.ts'
import { KnownKeys, type Loaded, type Needs } from '../../../src/handoff/disk.ts'
import { openEngine } from '../../../src/handoff/engine/engine-store.ts'
import type { OutboxDisk } from '../../../src/handoff/outbox.ts'
import { StoreUnavailable } from '../../../src/handoff/store.ts'
import { batchedPull, Driver, leaseOf, settlement, some } from '../../store/conformance/driver.ts'
import { TestClock, testPolicy } from '../../store/conformance/harness.ts'

/** A disk whose connection breaks right after it has reported a known key. */
class BreakingDisk extends MemoryDisk {
  breaks = false
  #isBroken = false

  override async append(...given: Parameters<MemoryDisk['append']>): Promise<void> {
    return super.append(...given).catch((error: unknown) => {
      this.#isBroken = this.breaks && error instanceof KnownKeys
      throw error
    })
  }

  override async load(needs: Needs): Promise<Loaded> {
    if (!this.#isBroken) return super.load(needs)
    this.#isBroken = false
    throw new StoreUnavailable('store_unavailable', 'the connection ended')
  }
}

async function opened(disk: MemoryDisk): Promise<Driver> {
  const clock = new TestClock()
  const parts = { policy: testPolicy, clock: clock.now, random: () => 0, secret: () => 'A'.repeat(16) }
  const limits = { largeCallBack: 500 }
  const store = await openEngine({ disk, ...parts, limits })
  return new Driver({ store, reopen: async () => {}, dispose: async () => {} }, clock)
}

test('a batch with a known key that cannot run again leaves nothing behind in memory', async () => {
  const medium = new MemoryMedium()
  const first = await opened(new MemoryDisk(medium))
  await first.callBack('a', some(0, 10))
  const { partitions } = await first.pull({ batch: 3, key: 'k' })
  const leases = partitions.map(({ lease }) => leaseOf(lease?.id ?? ''))

  const disk = new BreakingDisk(medium)
  const driver = await opened(disk)
  disk.breaks = true
  const settlements = leases.map((lease) => ({ lease, order: settlement({ outcome: 'released' }) }))
  const batch = { settles: [{ instance: null, settlements }], pulls: [batchedPull({ key: 'k' })] }
  await expect(driver.batch(batch)).rejects.toThrow('the connection ended')

  // The next entry must not make durable what was never appended.
  disk.breaks = false
  expect(await driver.callBack('a', some(0, 12))).toEqual({ kind: 'stored', accepted: 2, duplicates: 10 })
  expect(await driver.store.audit()).toEqual([])
  expect((await driver.task('a')).facts.partitions).toMatchObject({ ready: 9, leased: 3 })
})

/** A disk that holds back staged rows, and reads of subscriptions. */
class HeldDisk extends MemoryDisk {
  opened = 0
  holds = false
  readonly staging = Promise.withResolvers<void>()
  readonly reading = Promise.withResolvers<void>()
  readonly isStaging = Promise.withResolvers<void>()
  readonly isReading = Promise.withResolvers<void>()

  override open(): ReturnType<MemoryDisk['open']> {
    this.opened += 1
    return super.open()
  }

  override stage(): Promise<void> {
    this.isStaging.resolve()
    return this.staging.promise
  }

  override readonly outbox: OutboxDisk = {
    subscriptions: async () => {
      if (this.holds) {
        this.isReading.resolve()
        await this.reading.promise
      }
      return []
    },
    deliveries: async () => [],
    backlogs: async () => [],
  }
}

test('the disk is opened again if a large call-back fails while memory is read again for a known key', async () => {
  const medium = new MemoryMedium()
  const first = await opened(new MemoryDisk(medium))
  await first.callBack('a', some(0, 10))
  await first.pull({ key: 'k' })

  const disk = new HeldDisk(medium)
  const driver = await opened(disk)
  const large = driver.callBack('b', some(0, 600))
  await disk.isStaging.promise
  disk.holds = true
  const pull = driver.pull({ key: 'k' })
  await disk.isReading.promise
  disk.staging.reject(new StoreUnavailable('store_unavailable', 'the connection ended'))
  await expect(large).rejects.toThrow('the connection ended')
  disk.reading.resolve()
  expect((await pull).repeated).toBe(true)
  expect(disk.opened).toBe(2)
})
