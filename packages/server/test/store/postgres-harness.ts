import { afterAll, beforeAll } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { openPostgresStore } from '../../src/store/postgres/store.ts'
import type { StoreHarness } from './conformance/harness.ts'

/** A real PostgreSQL, one server for all tests of a file and a database for each of them. */
export function postgresHarness(): StoreHarness {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server.dispose())
  return {
    name: 'PostgreSQL',
    async open({ policy, clock }) {
      const { name, url } = await server.borrowDatabase()
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
