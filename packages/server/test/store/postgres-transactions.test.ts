import { afterAll, beforeAll, expect, test } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { Connections } from '../../src/store/postgres/session/connections.ts'
import { Connector } from '../../src/store/postgres/session/connector.ts'
import { statement } from '../../src/store/postgres/session/statement.ts'
import { Transactions } from '../../src/store/postgres/session/transactions.ts'
import { testPolicy } from './conformance/harness.ts'

let server: PostgresServer
let connections: Connections
let transactions: Transactions
beforeAll(async () => {
  server = await PostgresServer.start()
  const { url } = await server.createDatabase()
  await (await openPostgresStore({ url, policy: testPolicy })).close()
  const options = { connectMillis: 3000, answerMillis: 40_000, pooledByTransaction: false }
  connections = new Connections(new Connector([url], options), 1, 5000, { enter: async () => {} })
  transactions = new Transactions(connections, undefined, false)
})
afterAll(async () => {
  await connections.close()
  await server.dispose()
})

const deadlock = statement(
  'test-deadlock',
  `DO $$ BEGIN RAISE EXCEPTION 'as in a deadlock' USING ERRCODE = 'deadlock_detected'; END $$`,
)

test('what failed in a transaction is told from what fails after it, on a connection that knows no statement yet', async () => {
  let tries = 0
  const answered = transactions.run(async (tx) => {
    tries += 1
    // Not prepared yet, and sent twice in one go: the second relies on the first, which a failed transaction refuses.
    const late = statement(`test-late-${tries}`, 'SELECT 1 AS one')
    if (tries === 1) tx.post(deadlock)
    tx.post(late)
    return tx.run(late)
  })
  expect(await answered).toEqual([{ one: 1 }])
  expect(tries).toBe(2)
})
