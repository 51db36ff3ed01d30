import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { ServiceProcess } from '../../../../test/support/service-process.ts'
import { StoreRefused } from '../../src/handoff/store.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { testPolicy } from './conformance/test-policy.ts'

test('a start logs where the database is, and no password', async () => {
  const server = await PostgresServer.start()
  onTestFinished(() => server.dispose())
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

describe('a start that fails says what to look at', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start()
  })
  afterAll(() => server.dispose())

  const opening = (url: string) => openPostgresStore({ url, policy: testPolicy })

  test('where nothing listens', async () => {
    const refused = opening('postgres://baton:secret@127.0.0.1:1/baton')
    await expect(refused).rejects.toThrow(StoreRefused)
    await expect(refused).rejects.toThrow(
      'PostgreSQL cannot be reached (ECONNREFUSED); check the database URL, and PostgreSQL at 127.0.0.1:1',
    )
  })

  test('where there is no such database', async () => {
    const { url } = await server.createDatabase()
    const other = new URL(url)
    other.pathname = '/nowhere'
    const refused = opening(other.href)
    await expect(refused).rejects.toThrow(StoreRefused)
    await expect(refused).rejects.toThrow(
      `the database does not exist; check the database URL, and PostgreSQL at ${other.host}`,
    )
  })

  test('where the user may not make tables', async () => {
    const { url } = await server.createDatabase()
    await server.query(`CREATE ROLE reader LOGIN PASSWORD 'secret'`)
    const asReader = new URL(url)
    asReader.username = 'reader'
    asReader.password = 'secret'
    const refused = opening(asReader.href)
    await expect(refused).rejects.toThrow(StoreRefused)
    await expect(refused).rejects.toThrow('grant it CREATE on the database')
    await expect(refused).rejects.not.toThrow('secret')
  })
})
