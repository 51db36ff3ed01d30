import { afterAll, beforeAll } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { CleanDatabases } from '../support/clean-databases.ts'
import { keepDataIn } from '../support/test-app.ts'

/**
 * The service over HTTP on PostgreSQL: the same tests on another store. These are the tests in which HTTP and
 * the store interact in ways that the conformance suite does not cover: waiting, streams, disconnects,
 * metrics, large call-backs, and random requests.
 */
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
keepDataIn(() => databases.take())

await import('../http/pull.test.ts')
await import('../http/instances.test.ts')
await import('../http/events.test.ts')
await import('../http/metrics.test.ts')
await import('../http/scale.test.ts')
await import('../http/hang-up.test.ts')
await import('../http/large-call-back.test.ts')
await import('../http/fuzz.test.ts')
