import { randomBytes } from 'node:crypto'
import { openEngine } from '../../src/handoff/engine/engine-store.ts'
import type { EngineLimits } from '../../src/handoff/engine/runner.ts'
import type { StoreHarness } from '../store/conformance/harness.ts'
import { sqliteHarness } from './sqlite-harness.ts'

/** The engine on the embedded disk. It is opened again on what a crash would have left. */
export const sqliteEngineHarness = (limits: Partial<EngineLimits> = {}): StoreHarness => ({
  name: 'engine on SQLite',
  async open({ policy, clock }) {
    const under = await sqliteHarness.create()
    const openStore = (changed = policy) =>
      openEngine({
        disk: under.disk,
        policy: changed,
        clock: clock.now,
        random: Math.random,
        secret: () => randomBytes(12).toString('base64url'),
        limits,
      })
    let store = await openStore()
    return {
      get store() {
        return store
      },
      async reopen(changed = policy) {
        await store.probe()
        await under.crash()
        store = await openStore(changed)
      },
      async dispose() {
        await store.close()
        await under.dispose()
      },
    }
  },
})
