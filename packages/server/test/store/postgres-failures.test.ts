import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { Connections } from '../../src/store/postgres/session/connections.ts'
import { Connector } from '../../src/store/postgres/session/connector.ts'
import { asUnavailable, sqlState } from '../../src/store/postgres/session/failures.ts'
import { callBackOrder, some } from './conformance/driver.ts'
import { testPolicy } from './conformance/harness.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.dispose())

test('an error of the socket is no word of the server, whatever its code looks like', () => {
  const broken = Object.assign(new Error('write EPIPE'), { code: 'EPIPE', syscall: 'write', errno: -32 })
  expect(sqlState(broken)).toBeUndefined()
  expect(asUnavailable(broken)?.message).toContain('PostgreSQL cannot be reached (EPIPE)')
})

describe('when the server takes connections and refuses what we write', () => {
  test('no session is left behind', async () => {
    const { name, url } = await server.createDatabase()
    const options = { connectMillis: 3000, answerMillis: 40_000, pooledByTransaction: false }
    const connections = new Connections(new Connector([url], options), 3, 5000, { enter: async () => {} })
    for (let tries = 0; tries < 5; tries += 1)
      // Nothing was migrated: there is no table to write down the session in.
      await expect(connections.take()).rejects.toMatchObject({ code: '42P01' })
    await expect
      .poll(() => server.query(`SELECT pid FROM pg_stat_activity WHERE datname = '${name}'`), {
        timeout: 60_000,
      })
      .toEqual([])
  })

  test('counters that cannot be folded are told of, and are folded later', async () => {
    const { name, url } = await server.createDatabase()
    const told: unknown[] = []
    const store = await openPostgresStore({ url, policy: testPolicy, failed: (error) => told.push(error) })
    await server.query('ALTER SEQUENCE baton.change_order RENAME TO out_of_reach', name)
    const callBacks = [callBackOrder('a', some(0, 2))]
    await store.handOff({ settles: [], renews: [], undos: [], callBacks, pulls: [] })
    await expect.poll(() => told[0], { timeout: 60_000 }).toMatchObject({ code: '42P01' })
    await server.query('ALTER SEQUENCE baton.out_of_reach RENAME TO change_order', name)
    const folded = () => server.query('SELECT ready_partitions FROM baton.task', name)
    await expect.poll(folded, { timeout: 60_000 }).toEqual([{ ready_partitions: '2' }])
    await store.close()
  })
})
