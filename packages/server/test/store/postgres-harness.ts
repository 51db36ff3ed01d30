import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { openPostgresDisk, type PostgresDisk } from '../../src/disk/postgres/postgres-disk.ts'
import { openEngine } from '../../src/handoff/engine/engine-store.ts'
import { CleanDatabases } from '../support/clean-databases.ts'
import type { StoreHarness } from './conformance/harness.ts'

const node = { nodeId: 'node', url: null }

/** The engine on a real PostgreSQL. It is opened again by another node, which takes over from one that was not closed. */
export function postgresHarness(): StoreHarness {
  let server: PostgresServer
  let databases: CleanDatabases
  beforeAll(async () => {
    server = await PostgresServer.start()
    databases = await CleanDatabases.on(server)
  })
  afterAll(async () => {
    await databases.dispose()
    await server.dispose()
  })
  return {
    name: 'engine on PostgreSQL',
    async open({ policy, clock }) {
      const { url, giveBack } = await databases.take()
      let disk: PostgresDisk
      const openStore = async (changed = policy) => {
        disk = await openPostgresDisk({ url, node })
        const secret = () => randomBytes(12).toString('base64url')
        return openEngine({ disk, policy: changed, clock: clock.now, random: Math.random, secret })
      }
      let store = await openStore()
      return {
        get store() {
          return store
        },
        async reopen(changed = policy) {
          const before = disk
          await store.probe()
          store = await openStore(changed)
          await before.close()
        },
        async dispose() {
          await store.close()
          giveBack()
        },
      }
    },
  }
}
