import { describe, expect, onTestFinished, test } from 'vitest'
import { append } from '../../../src/disk/postgres/append.ts'
import { Connection } from '../../../src/disk/postgres/session/connection.ts'
import { KnownKeys } from '../../../src/handoff/disk.ts'
import { entry, row } from './samples.ts'
import { diskDatabases } from './support.ts'

const databases = diskDatabases()

/** A leader, with the connection that it appends on. */
async function leader() {
  const database = await databases.create()
  const disk = await database.disk()
  const { term, last } = await disk.open()
  const open = async () => {
    const connection = await Connection.open(database.url, { connectMillis: 5000, answerMillis: 30_000 })
    onTestFinished(() => connection.close())
    return connection
  }
  return {
    database,
    first: last + 1,
    open,
    add: (connection: Connection, ...[number, given]: Parameters<typeof entry>) =>
      append(connection, { term, writes: null }, entry(number, given)),
    entries: async () => {
      const rows = await database.query(
        `SELECT number FROM baton.entry WHERE number > ${last} ORDER BY number`,
      )
      return rows.map(({ number }) => Number(number) - last)
    },
  }
}

async function keptBy(connection: Connection): Promise<string[]> {
  const rows = await connection.run({
    text: `SELECT name FROM pg_prepared_statements WHERE name LIKE 'baton%' ORDER BY prepare_time`,
  })
  return rows.map(({ name }) => name as string)
}

test('a session keeps the statements of appends', async () => {
  const { add, first, open, entries } = await leader()
  const connection = await open()
  await add(connection, first)
  await add(connection, first + 1, { newRows: [row(1)], newKeys: ['k'] })
  await add(connection, first + 2)
  expect(await keptBy(connection)).toHaveLength(2)
  expect(await entries()).toEqual([1, 2, 3])
})

describe('behind a pooler', () => {
  test('a session that lacks the statement gets it without a name, and the entry once', async () => {
    const { add, first, open, entries } = await leader()
    const connection = await open()
    await add(connection, first)
    await connection.run({ text: 'DEALLOCATE ALL' })
    await add(connection, first + 1)
    await add(connection, first + 2, { newRows: [row(1)] })
    expect(await keptBy(connection)).toEqual([])
    expect(await entries()).toEqual([1, 2, 3])
  })

  test('a session that has the name already gets the statement without one, and the entry once', async () => {
    const { add, first, open, entries } = await leader()
    const other = await open()
    await add(other, first)
    const [name] = await keptBy(other)
    const connection = await open()
    await connection.run({ text: `PREPARE "${name}" AS SELECT 'another statement'` })
    await add(connection, first + 1)
    await add(connection, first + 2)
    expect(await entries()).toEqual([1, 2, 3])
  })
})

test('a statement that is refused for another reason is not sent again', async () => {
  const { add, first, open, entries } = await leader()
  const connection = await open()
  await add(connection, first)
  await expect(add(connection, first)).rejects.toMatchObject({ code: '23505' })
  await expect(add(connection, first + 2)).rejects.toThrow('another node is the leader')
  expect(await keptBy(connection)).toHaveLength(1)
  expect(await entries()).toEqual([1])
})

test('a known key is found by a statement that is kept', async () => {
  const { add, database, first, open, entries } = await leader()
  const connection = await open()
  await database.query(`INSERT INTO baton.pull_key (key, leases, forget_at) VALUES ('k', '[]', 1)`)
  for (let at = 0; at < 10; at += 1) await add(connection, first + at, { newKeys: [`new ${at}`] })
  await expect(add(connection, first + 10, { newKeys: ['k'] })).rejects.toThrow(KnownKeys)
  expect(await entries()).toHaveLength(10)
})

test('a plan for a small table is not kept when the table has grown', async () => {
  const { add, database, first, open } = await leader()
  const connection = await open()
  const plan = async () => {
    const [name] = await keptBy(connection)
    const rows = await connection.run({ text: `EXPLAIN EXECUTE "${name}" (0, 'term', 'body', NULL)` })
    return rows.map((line) => line['QUERY PLAN']).join('\n')
  }
  await database.query('VACUUM ANALYZE baton.entry')
  let number = first
  for (; number < first + 10; number += 1) await add(connection, number)
  expect(await plan()).toContain('Seq Scan on entry')
  const body = 'x'.repeat(1000)
  for (; number < first + 400; number += 1) await add(connection, number, { body })
  expect(await plan()).toContain('Index Scan')
})
