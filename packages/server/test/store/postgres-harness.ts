import { afterAll, beforeAll } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import type { AloneMode } from '../../src/store/postgres/session/database-url.ts'
import type { StoreHarness } from './conformance/harness.ts'

/** A real PostgreSQL, one server for all tests of a file and a database for each of them. */
export function postgresHarness(alone: AloneMode = 'when-it-pays'): StoreHarness {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server.dispose())
  return {
    name: alone === 'whenever-possible' ? 'lone PostgreSQL' : 'PostgreSQL',
    async open({ policy, clock }) {
      const { name, url: database } = await server.borrowDatabase()
      const url = `${database}?alone=${alone}`
      let store = await openPostgresStore({ url, policy, clock: clock.now })
      return {
        get store() {
          return store
        },
        async reopen(changed = policy) {
          await store.close()
          store = await openPostgresStore({ url, policy: changed, clock: clock.now })
        },
        async dispose() {
          await store.close()
          await server.giveBack(name)
        },
      }
    },
  }
}
