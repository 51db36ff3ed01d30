import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  type Certificate,
  certificateFile,
  PostgresServer,
} from '../../../../test/postgres/support/postgres-server.ts'
import { ServiceProcess } from '../../../../test/support/service-process.ts'
import { StoreRefused } from '../../src/handoff/store.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { testPolicy } from './conformance/test-policy.ts'

const VERIFIED = `sslmode=verify-full&sslrootcert=${certificateFile('ca.crt')}`

/** One server, whose certificate changes: sessions that begin after it was told see the new one. */
let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start({ certificate: 'right' })
})
afterAll(() => server.dispose())

async function show(certificate: Certificate): Promise<void> {
  await server.putCertificate(certificate)
  const before = await server.query('SELECT pg_conf_load_time() AS at')
  await server.query('SELECT pg_reload_conf()')
  await expect.poll(() => server.query('SELECT pg_conf_load_time() AS at')).not.toEqual(before)
}

const open = (query: string, { url } = { url: server.url() }) =>
  openPostgresStore({ url: `${url}?${query}`, policy: testPolicy })

async function refusalOf(query: string, of = { url: server.url() }): Promise<string> {
  const refusal = await open(query, of).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(StoreRefused)
  return (refusal as Error).message.replace(`127.0.0.1:${server.port}`, 'HOST')
}

describe('a server with a certificate', () => {
  test.each([
    VERIFIED,
    VERIFIED.replace('verify-full', 'require'),
    'sslmode=no-verify',
    'uselibpqcompat=true&sslmode=require',
    'sslmode=disable',
  ])('is used with %s', async (query) => {
    const store = await open(query)
    const sessions = () =>
      server.query(
        `SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'baton'`,
      )
    // Those of the test before may still be on their way out.
    await expect.poll(sessions).toEqual([{ ssl: query !== 'sslmode=disable' }])
    await store.close()
  })

  test.each([
    'sslmode=verify-full',
    'sslmode=require',
    'ssl=true',
    `sslmode=verify-full&sslrootcert=${certificateFile('other-ca.crt')}`,
  ])('of a CA that is not known is refused with %s', async (query) => {
    expect(await refusalOf(query)).toBe(
      'at HOST the certificate of PostgreSQL is not signed by a CA that is trusted here (unable to verify the first certificate); name the file of its CA with sslrootcert=FILE in the database URL, or in the variable NODE_EXTRA_CA_CERTS',
    )
  })

  test('is used when its CA is named in the environment', async () => {
    const service = ServiceProcess.run(['--port', '0'], {
      BATON_DATABASE_URL: `${server.url()}?sslmode=verify-full`,
      NODE_EXTRA_CA_CERTS: certificateFile('ca.crt'),
    })
    await service.listening()
    service.signal('SIGTERM')
    expect(await service.exited).toMatchObject({ code: 0 })
  })

  test('and a file that is not there', async () => {
    expect(await refusalOf('sslmode=verify-full&sslrootcert=/nowhere/ca.crt')).toBe(
      `a file that the database URL names cannot be read (ENOENT: no such file or directory, open '/nowhere/ca.crt'); sslrootcert, sslcert and sslkey are files on this machine`,
    )
  })

  test('and a key that does not belong to our own certificate', async () => {
    const own = `sslcert=${certificateFile('ca.crt')}&sslkey=${certificateFile('server.key')}`
    expect(await refusalOf(`${VERIFIED}&${own}`)).toBe(
      'at HOST TLS with PostgreSQL failed (key values mismatch); look at sslrootcert, sslcert and sslkey in the database URL, and at the log of PostgreSQL',
    )
  })
})

test('a certificate that has expired', async () => {
  await show('expired')
  expect(await refusalOf(VERIFIED)).toBe(
    'at HOST the certificate of PostgreSQL, or of its CA, has expired; renew it there, and see that the clock of this machine is right',
  )
})

test('a certificate for another host', async () => {
  await show('other-host')
  expect(await refusalOf(VERIFIED)).toBe(
    'at HOST the certificate of PostgreSQL is for another host (it is for DNS:db.example, and not for 127.0.0.1); name a host of the certificate in the database URL, or have a certificate made for this one',
  )
})

test('a server without TLS', async () => {
  const plain = await PostgresServer.start()
  onTestFinished(() => plain.dispose())
  expect(await refusalOf('sslmode=require', { url: plain.url() })).toBe(
    `at 127.0.0.1:${plain.port} PostgreSQL offers no TLS, and it is asked for; switch it on there (ssl = on), or, where the network can be trusted, say sslmode=disable in the database URL`,
  )
})

test('a certificate that expires while a node runs is what readiness and the log speak of', async () => {
  await show('right')
  const { name, url } = await server.createDatabase()
  const service = await ServiceProcess.started(['--database-url', `${url}?${VERIFIED}`])
  const readiness = async () => {
    const answer = await fetch(`${service.url}/readyz`)
    return { status: answer.status, detail: ((await answer.json()) as { detail?: string }).detail }
  }
  expect(await readiness()).toMatchObject({ status: 200 })
  await show('expired')
  await server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`)
  await expect.poll(readiness, { timeout: 60_000 }).toEqual({
    status: 503,
    detail: 'the certificate of PostgreSQL, or of its CA, has expired; the request can be sent again',
  })
  await service.logged('the store cannot commit')
  expect(service.logLines.find(({ msg }) => msg === 'the store cannot commit')).toMatchObject({
    cause: `at 127.0.0.1:${server.port} the certificate of PostgreSQL, or of its CA, has expired; renew it there, and see that the clock of this machine is right`,
  })
  await show('right')
  await expect.poll(readiness, { timeout: 60_000 }).toMatchObject({ status: 200 })
  service.signal('SIGTERM')
  await service.exited
})
