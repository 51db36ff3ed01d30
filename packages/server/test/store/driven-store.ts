import type { Disk } from '../../src/handoff/disk.ts'
import { openEngine } from '../../src/handoff/engine/engine-store.ts'
import type { EngineOptions } from '../../src/handoff/engine/runner.ts'
import type { Store } from '../../src/handoff/store.ts'
import { Driver } from './conformance/driver.ts'
import { TestClock, testPolicy } from './conformance/harness.ts'

/** For a store that its test opens and closes. */
export const driverOf = (store: Store, clock = new TestClock()): Driver =>
  new Driver({ store, reopen: async () => {}, dispose: async () => {} }, clock)

/** The engine on a disk of the test, without randomness. */
export async function drivenEngine(
  disk: Disk,
  { clock = new TestClock(), ...options }: Partial<Omit<EngineOptions, 'clock'>> & { clock?: TestClock } = {},
): Promise<Driver> {
  const fixed = { policy: testPolicy, clock: clock.now, random: () => 0, secret: () => 'A'.repeat(16) }
  return driverOf(await openEngine({ disk, ...fixed, ...options }), clock)
}
