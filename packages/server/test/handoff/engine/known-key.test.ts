import { expect, test } from 'vitest'
import { MemoryDisk } from '../../../src/disk/memory/memory-disk.ts'
import { MemoryMedium } from '../../../src/disk/memory/memory-medium.ts'
import { KnownKeys, type Loaded, type Needs } from '../../../src/handoff/disk.ts'
import { openEngine } from '../../../src/handoff/engine/engine-store.ts'
import { StoreUnavailable } from '../../../src/handoff/store.ts'
import { Driver, leaseOf, pullOrder, settlement, some } from '../../store/conformance/driver.ts'
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

test('a batch with a known key that cannot run again leaves nothing behind in memory', async () => {
  const medium = new MemoryMedium()
  const clock = new TestClock()
  const opened = async (disk: MemoryDisk) => {
    const parts = { policy: testPolicy, clock: clock.now, random: () => 0, secret: () => 'A'.repeat(16) }
    const store = await openEngine({ disk, ...parts })
    return new Driver({ store, reopen: async () => {}, dispose: async () => {} }, clock)
  }
  const first = await opened(new MemoryDisk(medium))
  await first.callBack('a', some(0, 10))
  const { partitions } = await first.pull({ batch: 3, key: 'k' })
  const leases = partitions.map(({ lease }) => leaseOf(lease?.id ?? ''))

  const disk = new BreakingDisk(medium)
  const driver = await opened(disk)
  disk.breaks = true
  const settlements = leases.map((lease) => ({ lease, order: settlement({ outcome: 'released' }) }))
  const batch = { settles: [{ instance: null, settlements }], pulls: [pullOrder({ key: 'k' })] }
  await expect(driver.batch(batch)).rejects.toThrow('the connection ended')

  // The next entry must not make durable what was never appended.
  disk.breaks = false
  expect(await driver.callBack('a', some(0, 12))).toEqual({ kind: 'stored', accepted: 2, duplicates: 10 })
  expect(await driver.store.audit()).toEqual([])
  expect((await driver.task('a')).facts.partitions).toMatchObject({ ready: 9, leased: 3 })
})
