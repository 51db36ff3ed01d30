import { afterAll, beforeAll } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { CleanDatabases } from '../support/clean-databases.ts'
import { keepDataIn } from '../support/test-app.ts'

/**
 * The service over HTTP on PostgreSQL: the same tests, another store. Here are those in which HTTP and the store meet in a
 * way that the verbs of the conformance suite do not show: waiting, streams, hang-ups, figures, a body that is read on
 * another thread, and any request in any order.
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
