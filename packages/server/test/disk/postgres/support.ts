import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { PostgresServer } from '../../../../../test/postgres/support/postgres-server.ts'
import { openPostgresDisk, type PostgresDiskOptions } from '../../../src/disk/postgres/postgres-disk.ts'
import type { SharedDisk } from '../../../src/handoff/disk.ts'
import { CleanDatabases } from '../../support/clean-databases.ts'

export interface DiskDatabase {
  readonly url: string
  readonly name: string
  /** Another node on the database. It is closed after the test. */
  disk(options?: Partial<PostgresDiskOptions> & { readonly port?: number }): Promise<SharedDisk>
  query(text: string): Promise<Record<string, unknown>[]>
  /** A session that does not belong to a node. */
  session(): Promise<pg.Client>
}

export interface DiskDatabases {
  readonly server: PostgresServer
  create(): Promise<DiskDatabase>
}

/** One server for all tests of a file, and databases on it. */
export function diskDatabases(): DiskDatabases {
  let server: PostgresServer
  let databases: CleanDatabases
  beforeAll(async () => {
    server = await PostgresServer.start()
    databases = await CleanDatabases.on(server)
  })
  afterAll(() => server.dispose())
  return {
    get server() {
      return server
    },
    async create() {
      const { name, url } = await databases.create()
      return {
        name,
        url,
        async disk({ port = server.port, ...given } = {}) {
          const disk = await openPostgresDisk({
            url: url.replace(`:${server.port}/`, `:${port}/`),
            node: { nodeId: randomUUID(), url: '' },
            ...given,
          })
          onTestFinished(() => disk.close())
          return disk
        },
        query: (text) => server.query(text, name),
        async session() {
          const client = new pg.Client({ connectionString: url })
          client.on('error', () => {})
          await client.connect()
          onTestFinished(() => client.end())
          return client
        },
      }
    },
  }
}
