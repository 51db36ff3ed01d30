import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEmbeddedStore } from '../../src/open-store.ts'
import { recount } from '../support/recount.ts'
import type { StoreHarness } from './conformance/harness.ts'

/**
 * The embedded store as the service opens it, in its own folder. It is reopened on the files that a crash
 * would have left, before the store could close them.
 */
export const sqliteHarness: StoreHarness = {
  name: 'SQLite',
  async open({ policy, clock, openWork }) {
    const folder = await mkdtemp(join(tmpdir(), 'baton-store-'))
    let life = 0
    const data = () => join(folder, `life-${life}`)
    let store = await openEmbeddedStore({ folder: data(), policy, clock: clock.now, openWork })
    return {
      get store() {
        return store
      },
      async reopen(changed = policy) {
        const before = { store, folder: data() }
        life += 1
        await store.probe()
        for (const file of ['baton.db', 'baton.db-wal'])
          await cp(join(before.folder, file), join(data(), file))
        await before.store.close()
        store = await openEmbeddedStore({ folder: data(), policy: changed, clock: clock.now, openWork })
      },
      recount: () => recount({ data: data() }),
      async dispose() {
        await store.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}
