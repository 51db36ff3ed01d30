import { afterAll, beforeAll } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { openPostgresDisk } from '../../src/disk/postgres/postgres-disk.ts'
import type { DiskHarness } from './conformance/harness.ts'

/** A database with the schema and nothing in it. */
export const TEMPLATE = 'template_of_disks'

const node = { nodeId: 'node', url: null }

/** A real PostgreSQL, one server for all tests of a file and a database for each of them. */
export function postgresHarness(): DiskHarness {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
    await makeTemplate(server)
  })
  afterAll(() => server.dispose())
  return {
    name: 'PostgreSQL',
    async create() {
      const { url } = await server.createDatabase(TEMPLATE)
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
        dispose: () => disk.close(),
      }
    },
  }
}

/** A database with the schema in it is copied several times faster than the schema is made. */
export async function makeTemplate(server: PostgresServer): Promise<void> {
  await server.query(`CREATE DATABASE ${TEMPLATE}`)
  const disk = await openPostgresDisk({ url: server.url(TEMPLATE), node })
  await disk.close()
}
