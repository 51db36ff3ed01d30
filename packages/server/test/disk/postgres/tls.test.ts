import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { certificateFile, PostgresServer } from '../../../../../test/postgres/support/postgres-server.ts'
import { openPostgresDisk } from '../../../src/disk/postgres/postgres-disk.ts'
import { StoreRefused } from '../../../src/handoff/store.ts'

const VERIFIED = `sslmode=verify-full&sslrootcert=${certificateFile('ca.crt')}`

/** One server whose certificate changes: sessions that begin after a reload get the new one. */
let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start({ certificate: 'right' })
})
afterAll(() => server.dispose())

const open = (query: string, { url } = { url: server.url() }) =>
  openPostgresDisk({ url: `${url}?${query}`, node: { nodeId: 'node', url: '' } })

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
    const disk = await open(query)
    await disk.probe(0)
    const sessions = () =>
      server.query(
        `SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'baton'`,
      )
    // Connections of the previous test may still be closing.
    await expect.poll(sessions).toEqual([{ ssl: query !== 'sslmode=disable' }])
    await disk.close()
  })

  test.each([
    'sslmode=verify-full',
    'sslmode=require',
    'ssl=true',
    `sslmode=verify-full&sslrootcert=${certificateFile('other-ca.crt')}`,
  ])('of an unknown CA is refused with %s', async (query) => {
    expect(await refusalOf(query)).toBe(
      'at HOST the certificate of PostgreSQL is not signed by a trusted CA (unable to verify the first certificate); set the CA file with sslrootcert=FILE in the database URL, or with the variable NODE_EXTRA_CA_CERTS',
    )
  })

  test('is not used if a file of the URL is missing', async () => {
    expect(await refusalOf('sslmode=verify-full&sslrootcert=/nowhere/ca.crt')).toBe(
      `a file in the database URL cannot be read (ENOENT: no such file or directory, open '/nowhere/ca.crt'); sslrootcert, sslcert and sslkey must be files on this machine`,
    )
  })

  test('is not used if the key does not belong to the client certificate', async () => {
    const own = `sslcert=${certificateFile('ca.crt')}&sslkey=${certificateFile('server.key')}`
    expect(await refusalOf(`${VERIFIED}&${own}`)).toBe(
      'at HOST TLS with PostgreSQL failed (key values mismatch); check sslrootcert, sslcert and sslkey in the database URL, and the log of PostgreSQL',
    )
  })
})

test('a certificate that has expired is refused', async () => {
  await server.showCertificate('expired')
  expect(await refusalOf(VERIFIED)).toBe(
    'at HOST the certificate of PostgreSQL, or of its CA, has expired; renew the certificate, and check the clock of this machine',
  )
})

test('a certificate for another host is refused', async () => {
  await server.showCertificate('other-host')
  expect(await refusalOf(VERIFIED)).toBe(
    'at HOST the certificate of PostgreSQL is for another host (it is for DNS:db.example, not for 127.0.0.1); use a host name of the certificate in the database URL, or issue a certificate for this host',
  )
})

test('a server without TLS is refused if TLS is required', async () => {
  const plain = await PostgresServer.start()
  onTestFinished(() => plain.dispose())
  expect(await refusalOf('sslmode=require', { url: plain.url() })).toBe(
    `at 127.0.0.1:${plain.port} the database URL requires TLS, and PostgreSQL does not offer it; enable TLS in PostgreSQL (ssl = on) or, in a trusted network, set sslmode=disable in the database URL`,
  )
})
