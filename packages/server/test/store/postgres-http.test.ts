import { afterAll, beforeAll } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { makeTemplate, TEMPLATE } from '../disk/postgres-harness.ts'
import { keepDataIn } from '../support/test-app.ts'

/**
 * What is held against the service over HTTP holds on PostgreSQL too: the same tests, another store. Those that are
 * not here never reach a store, or look at the data folder of the embedded one.
 */
let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
  await makeTemplate(server)
})
afterAll(() => server.dispose())
keepDataIn(async () => {
  const { url } = await server.createDatabase(TEMPLATE)
  return { url, dispose: async () => {} }
})

await import('../http/call-back.test.ts')
await import('../http/pull.test.ts')
await import('../http/key-owner.test.ts')
await import('../http/settle.test.ts')
await import('../http/renew.test.ts')
await import('../http/control.test.ts')
await import('../http/tasks.test.ts')
await import('../http/totals.test.ts')
await import('../http/instances.test.ts')
await import('../http/events.test.ts')
await import('../http/metrics.test.ts')
await import('../http/wire.test.ts')
await import('../http/hang-up.test.ts')
await import('../http/large-call-back.test.ts')
await import('../http/fuzz.test.ts')
