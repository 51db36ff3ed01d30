import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { StoreHarness } from './conformance/harness.ts'

/** The embedded store as the service opens it: on a thread of its own, in a folder of its own. */
export const sqliteHarness: StoreHarness = {
  name: 'SQLite',
  async open({ policy, clock }) {
    const folder = await mkdtemp(join(tmpdir(), 'baton-store-'))
    let store = await openSqliteStore({ folder, policy, clock: clock.now })
    return {
      get store() {
        return store
      },
      async reopen(changed = policy) {
        await store.close()
        store = await openSqliteStore({ folder, policy: changed, clock: clock.now })
      },
      async dispose() {
        await store.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}
