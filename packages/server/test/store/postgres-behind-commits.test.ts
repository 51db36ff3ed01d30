import { afterAll, beforeAll, expect, test } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { callBackOrder, leaseOf, pullOrder, settlement, some } from './conformance/driver.ts'
import { testPolicy } from './conformance/harness.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.dispose())

const nothing = { settles: [], renews: [], undos: [], callBacks: [], pulls: [] }

test('what goes wrong behind a commit is told and ends nothing', async () => {
  const { url, name } = await server.createDatabase()
  const told: unknown[] = []
  const store = await openPostgresStore({ url, policy: testPolicy, failed: (error) => told.push(error) })
  await store.handOff({ ...nothing, callBacks: [callBackOrder('a', some(0, 2))] })
  const { pulls } = await store.handOff({ ...nothing, pulls: [pullOrder()] })
  const lease = leaseOf(pulls[0]?.partitions[0]?.lease?.id ?? '')

  // Sets of leases are shrunk afterwards; nothing of the settling itself needs them.
  await server.query('ALTER TABLE baton.due RENAME TO out_of_reach', name)
  const settlements = [{ lease, order: settlement() }]
  const { settles } = await store.handOff({ ...nothing, settles: [{ instance: null, settlements }] })
  expect(settles).toEqual([[null]])
  await store.close()
  await server.query('ALTER TABLE baton.out_of_reach RENAME TO due', name)
  expect(told).toMatchObject([{ code: '42P01' }])
})
