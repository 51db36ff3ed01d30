import { afterAll, beforeAll } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { openPostgresDisk } from '../../src/disk/postgres/postgres-disk.ts'
import { CleanDatabases } from '../support/clean-databases.ts'
import type { DiskHarness } from './conformance/harness.ts'
import { describeDisk } from './conformance/index.ts'

const node = { nodeId: 'node', url: '' }

describeDisk(postgresHarness())

/** A real PostgreSQL: one server for all tests of a file, and a clean database for each test. */
function postgresHarness(): DiskHarness {
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
    name: 'PostgreSQL',
    async create() {
      const { url, giveBack } = await databases.take()
      let disk = await openPostgresDisk({ url, node })
      return {
        get disk() {
          return disk
        },
        async crash() {
          const before = disk
          disk = await openPostgresDisk({ url, node })
          await before.close()
        },
        async dispose() {
          await disk.close()
          giveBack()
        },
      }
    },
  }
}
