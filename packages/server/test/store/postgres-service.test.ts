import { afterAll, beforeAll, expect, test } from 'vitest'
import { certificateFile, PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { ServiceProcess } from '../../../../test/support/service-process.ts'

// What the service process logs about its database when it starts and while it runs.

const VERIFIED = `sslmode=verify-full&sslrootcert=${certificateFile('ca.crt')}`

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start({ certificate: 'right' })
})
afterAll(() => server.dispose())

test('a start logs where the database is, and no password', async () => {
  const { url } = await server.createDatabase()
  const secretive = new URL(url)
  secretive.password ||= 'secret'
  const service = await ServiceProcess.started(['--database-url', secretive.href])
  await service.logged('accepting requests')
  const line = service.logLines.find(({ msg }) => msg === 'accepting requests')
  expect(line).toMatchObject({ database: `${secretive.host}${secretive.pathname}` })
  expect(line).not.toHaveProperty('data')
  expect(service.stderr).not.toContain(secretive.password)
  service.signal('SIGTERM')
  await service.exited
})

test('the driver prints no warning for a URL with TLS', async () => {
  const service = ServiceProcess.run(['--database-url', 'postgres://u@127.0.0.1:1/db?sslmode=require'])
  expect(await service.exited).toMatchObject({ code: 1 })
  expect(service.stderr).toContain('PostgreSQL cannot be reached (ECONNREFUSED)')
  expect(service.stderr).not.toContain('WARNING')
})

test('a certificate is trusted when its CA is named in the environment', async () => {
  const { url } = await server.createDatabase()
  const service = ServiceProcess.run(['--port', '0'], {
    BATON_DATABASE_URL: `${url}?sslmode=verify-full`,
    NODE_EXTRA_CA_CERTS: certificateFile('ca.crt'),
  })
  await service.listening()
  service.signal('SIGTERM')
  expect(await service.exited).toMatchObject({ code: 0 })
})

test('a certificate that expires while a node runs is reported by readiness and the log', async () => {
  await server.showCertificate('right')
  const { name, url } = await server.createDatabase()
  const service = await ServiceProcess.started(['--database-url', `${url}?${VERIFIED}`])
  const readiness = async () => {
    const answer = await fetch(`${service.url}/readyz`)
    return { status: answer.status, detail: ((await answer.json()) as { detail?: string }).detail }
  }
  expect(await readiness()).toMatchObject({ status: 200 })
  await server.showCertificate('expired')
  await server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`)
  await expect
    .poll(readiness, { timeout: 60_000 })
    .toMatchObject({ status: 503, detail: expect.stringContaining('has expired') })
  await service.logged('the store cannot commit')
  await server.showCertificate('right')
  await expect.poll(readiness, { timeout: 60_000 }).toMatchObject({ status: 200 })
  service.signal('SIGTERM')
  await service.exited
})
