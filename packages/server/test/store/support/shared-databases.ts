import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { PostgresServer } from '../../../../../test/postgres/support/postgres-server.ts'
import { SharedDatabase } from './shared-database.ts'

export interface SharedDatabases {
  readonly server: PostgresServer
  /** With nothing in it; its nodes are closed when the test is over. */
  create(): Promise<SharedDatabase>
}

/** One server for all tests of a file, and databases on it. */
export function sharedDatabases(): SharedDatabases {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server.dispose())
  return {
    get server() {
      return server
    },
    async create() {
      const database = await SharedDatabase.create(server)
      onTestFinished(() => database.closeAll())
      return database
    },
  }
}
