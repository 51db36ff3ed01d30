import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PostgresServer } from '../../../../../test/postgres/support/postgres-server.ts'
import { openPostgresDisk } from '../../../src/disk/postgres/postgres-disk.ts'
import { StoreRefused } from '../../../src/handoff/store.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.dispose())

const opening = (url: string) => openPostgresDisk({ url, node: { nodeId: 'node', url: '' } })

async function databaseFor(role: string): Promise<{ name: string; url: string }> {
  await server.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`)
  const { name, url } = await server.createDatabase()
  const asRole = new URL(url)
  asRole.username = role
  asRole.password = 'secret'
  return { name, url: asRole.href }
}

describe('a start needs no privilege to create schemas', () => {
  test('after the first start', async () => {
    const { name, url } = await databaseFor('tenant')
    await server.query(`GRANT CREATE ON DATABASE ${name} TO tenant`)
    await (await opening(url)).close()
    await server.query(`REVOKE CREATE ON DATABASE ${name} FROM tenant`)
    await (await opening(url)).close()
  })

  test('if the schema was created in advance', async () => {
    const { name, url } = await databaseFor('guest')
    await server.query('CREATE SCHEMA baton AUTHORIZATION guest', name)
    await (await opening(url)).close()
  })
})

describe('a failed start reports the cause', () => {
  test('if nothing listens', async () => {
    const refused = opening('postgres://baton:secret@127.0.0.1:1/baton')
    await expect(refused).rejects.toThrow(StoreRefused)
    await expect(refused).rejects.toThrow(
      'PostgreSQL cannot be reached (ECONNREFUSED); check the database URL and PostgreSQL at 127.0.0.1:1',
    )
  })

  test('if the database does not exist', async () => {
    const { url } = await server.createDatabase()
    const other = new URL(url)
    other.pathname = '/nowhere'
    const refused = opening(other.href)
    await expect(refused).rejects.toThrow(StoreRefused)
    await expect(refused).rejects.toThrow(
      `the database does not exist (database "nowhere" does not exist); check the database URL and PostgreSQL at ${other.host}`,
    )
  })

  test('if the user may not create tables', async () => {
    const { url } = await databaseFor('reader')
    const refused = opening(url)
    await expect(refused).rejects.toThrow(StoreRefused)
    await expect(refused).rejects.toThrow('grant the user CREATE on the database')
    await expect(refused).rejects.not.toThrow('secret')
  })

  test('if the tables belong to another role', async () => {
    const { name, url } = await databaseFor('stranger')
    await server.query(`GRANT CREATE ON DATABASE ${name} TO stranger`)
    await (await opening(server.url(name))).close()
    const refused = opening(url)
    await expect(refused).rejects.toThrow(StoreRefused)
    await expect(refused).rejects.toThrow(
      'the schema baton of the database, or a table in it, belongs to the role postgres, and stranger has no permission to use it (permission denied for schema baton); connect as postgres',
    )
  })

  test('if the user owns the schema but not a table in it', async () => {
    const { name, url } = await databaseFor('heir')
    await (await opening(server.url(name))).close()
    await server.query('ALTER SCHEMA baton OWNER TO heir', name)
    const refused = opening(url)
    await expect(refused).rejects.toThrow(StoreRefused)
    await expect(refused).rejects.toThrow('belongs to the role postgres, and heir has no permission')
  })
})
