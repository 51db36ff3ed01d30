import { randomBytes } from 'node:crypto'
import { openEngine } from '../../src/handoff/engine/engine-store.ts'
import type { EngineLimits } from '../../src/handoff/engine/runner.ts'
import { MemoryDatabase } from '../support/memory-database.ts'
import { recountIn } from '../support/recount.ts'
import type { StoreHarness } from './conformance/harness.ts'

/** The engine on a database in memory. It is reopened without a close, as after a crash. */
export const memoryHarness = (limits: Partial<EngineLimits> = {}): StoreHarness => ({
  name: 'engine in memory',
  async open({ policy, clock, openWork }) {
    const database = new MemoryDatabase()
    const openStore = (changed = policy) =>
      openEngine({
        disk: database.disk(),
        policy: changed,
        clock: clock.now,
        random: Math.random,
        secret: () => randomBytes(12).toString('base64url'),
        limits: { ...limits, ...openWork?.limits },
        openWork,
      })
    let store = await openStore()
    return {
      get store() {
        return store
      },
      async reopen(changed = policy) {
        await store.probe()
        store = await openStore(changed)
      },
      recount: () => recountIn(database),
      async dispose() {
        await store.close()
      },
    }
  },
})
