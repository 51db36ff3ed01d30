import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { PostgresServer } from '../../../../../test/postgres/support/postgres-server.ts'
import { openPostgresDisk } from '../../../src/disk/postgres/postgres-disk.ts'
import { faultOf } from '../../../src/disk/postgres/session/connect-faults.ts'
import { Connector, parseDatabaseUrl } from '../../../src/disk/postgres/session/connector.ts'
import { asUnavailable, sqlState } from '../../../src/disk/postgres/session/errors.ts'
import { StoreRefused } from '../../../src/handoff/store.ts'

let server: PostgresServer
let at: string
beforeAll(async () => {
  server = await PostgresServer.start()
  at = `127.0.0.1:${server.port}`
  await server.query(`CREATE ROLE careful LOGIN PASSWORD 'secret'; CREATE ROLE ciphered LOGIN`)
  await writeFile(
    join(server.data, 'pg_hba.conf'),
    `host all postgres all trust
     host all careful all scram-sha-256
     hostssl all ciphered all trust`,
  )
  await server.query('SELECT pg_reload_conf()')
})
afterAll(() => server.dispose())

async function refusalOf(url: string): Promise<string> {
  const refusal = await openPostgresDisk({ url, node: { nodeId: 'node', url: '' } }).catch(
    (error: unknown) => error,
  )
  expect(refusal).toBeInstanceOf(StoreRefused)
  return (refusal as Error).message
}

describe('if PostgreSQL refuses the connection, the start reports', () => {
  test('a wrong password', async () => {
    expect(await refusalOf(`postgres://careful:wrong@${at}/postgres`)).toBe(
      `PostgreSQL refuses the password (password authentication failed for user "careful"); check the database URL and PostgreSQL at ${at}`,
    )
  })

  test('a missing password', async () => {
    expect(await refusalOf(`postgres://careful@${at}/postgres`)).toBe(
      `PostgreSQL requires a password, and the database URL has none; check the database URL and PostgreSQL at ${at}`,
    )
  })

  test('a user that may connect with TLS only', async () => {
    expect(await refusalOf(`postgres://ciphered@${at}/postgres`)).toBe(
      `PostgreSQL refuses the user (no pg_hba.conf entry for host "127.0.0.1", user "ciphered", database "postgres", no encryption); check the database URL and PostgreSQL at ${at}`,
    )
  })

  test('a parameter that PostgreSQL does not know', async () => {
    expect(await refusalOf(`postgres://postgres@${at}/postgres?options=-cno.such=1%20-cnowhere=1`)).toContain(
      'PostgreSQL refuses the connection (unrecognized configuration parameter "nowhere")',
    )
  })
})

describe('if none of several hosts can be used', () => {
  test.each([
    ['the first is away', () => `127.0.0.1:1,${at}`],
    ['the last is away', () => `${at},127.0.0.1:1`],
  ])(
    'and %s, the start reports each error, and a request that of the host that answers',
    async (_, hosts) => {
      const url = `postgres://careful:wrong@${hosts()}/postgres`
      const told = await refusalOf(url)
      expect(told).toMatch(/^no host of the database URL can be used: at /)
      expect(told).toContain('at 127.0.0.1:1 PostgreSQL cannot be reached (ECONNREFUSED)')
      expect(told).toContain(
        `at ${at} PostgreSQL refuses the password (password authentication failed for user "careful")`,
      )
      expect(told).not.toContain('wrong')
      const connecting = new Connector(parseDatabaseUrl(url).hosts).connect({
        connectMillis: 3000,
        answerMillis: 3000,
      })
      await expect(connecting).rejects.toMatchObject({
        code: 'store_unavailable',
        message: 'PostgreSQL refuses the password; the request can be sent again',
        cause: { message: told.replace('no host of the database URL can be used: ', '') },
      })
    },
  )
})

test('of the errors for several addresses of a name, one is reported', () => {
  const away = (address: string) =>
    Object.assign(new Error(`connect ECONNREFUSED ${address}`), { code: 'ECONNREFUSED', syscall: 'connect' })
  const error = Object.assign(new AggregateError([away('::1'), away('127.0.0.1')]), { code: 'ECONNREFUSED' })
  expect(faultOf(error)).toEqual({
    reason: 'PostgreSQL cannot be reached (ECONNREFUSED)',
    reached: 'nothing',
  })
})

test('a single standby is reported with its address and a remedy', async () => {
  const primary = await PostgresServer.start()
  onTestFinished(() => primary.dispose())
  await primary.stop()
  const standby = await PostgresServer.start({ copyOf: primary })
  onTestFinished(() => standby.dispose())
  expect(await refusalOf(standby.url())).toBe(
    `at 127.0.0.1:${standby.port} PostgreSQL is a standby and accepts no writes; use the primary in the database URL, or both hosts separated by a comma`,
  )
})

test('a socket error is not a server error, whatever its code looks like', () => {
  const broken = Object.assign(new Error('write EPIPE'), { code: 'EPIPE', syscall: 'write', errno: -32 })
  expect(sqlState(broken)).toBeUndefined()
  expect(asUnavailable(broken).message).toContain('PostgreSQL cannot be reached (EPIPE)')
})
