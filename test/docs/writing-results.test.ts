import { BatonClient } from '@baton/client'
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startService } from '../../packages/client/test/support/service.ts'
import { PostgresServer } from '../postgres/support/postgres-server.ts'
import { until } from '../support/until.ts'
import { fencesOf, readDocument, sectionNamed } from './support/markdown.ts'

const document = readDocument('docs/writing-results.md')

const statementsOf = (section: string): string[] =>
  fencesOf(sectionNamed(document, section).text).map(({ text }) => text)

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.dispose())

async function connect(): Promise<pg.Client> {
  const connection = new pg.Client({ connectionString: server.url() })
  await connection.connect()
  onTestFinished(() => connection.end())
  return connection
}

/** The tokens of two workers: the first one was cut off until its lease expired, the second one follows. */
async function lateAndSuccessor(name: string): Promise<{ late: number; successor: number }> {
  const { url } = await startService('--lease-seconds', '0.05', '--backoff-seconds', '0')
  const client = new BatonClient({ url })
  const descriptor = { computeTableName: 'shop.orders', record_count: 1, priorityLevel: 0 }
  await client.callBack([{ taskId: name, partition_name: `${name}-0-0`, ...descriptor }])
  const pull = async () => (await client.pull({ waitSeconds: 30 })).partitions[0]?.lease?.fencingToken
  const late = await until(pull)
  const successor = await until(pull)
  return { late, successor }
}

test('one row per partition: a late worker does not replace the result of its successor', async () => {
  const [table = '', write = ''] = statementsOf('One row per partition')
  const database = await connect()
  await database.query(table)
  const { late, successor } = await lateAndSuccessor('totals')
  const written = async (token: number, cents: number) =>
    (await database.query(write, ['totals-0-0', token, cents])).rowCount

  expect(await written(late, 100)).toBe(1)
  expect(await written(successor, 200)).toBe(1)
  expect(await written(successor, 200)).toBe(1)
  expect(await written(late, 100)).toBe(0)
  expect((await database.query('SELECT * FROM order_totals')).rows).toEqual([
    { partition_name: 'totals-0-0', fencing_token: String(successor), cents: '200' },
  ])
})

test('many rows per partition: a late worker waits for its successor, and then changes nothing', async () => {
  const [tables = '', fence = '', clear = '', add = ''] = statementsOf('Many rows per partition')
  const [database, lateWorker, observer] = [await connect(), await connect(), await connect()]
  await database.query(tables)
  const { late, successor } = await lateAndSuccessor('lines')
  const name = 'lines-0-0'
  const begin = async (connection: pg.Client, token: number) => {
    await connection.query('BEGIN')
    return (await connection.query(fence, [name, token])).rowCount
  }
  const replace = async (connection: pg.Client, cents: readonly number[]) => {
    await connection.query(clear, [name])
    for (const [line, amount] of cents.entries()) await connection.query(add, [name, line, amount])
    await connection.query('COMMIT')
  }

  // The late worker wrote before it was cut off, and did not report that.
  expect(await begin(lateWorker, late)).toBe(1)
  await replace(lateWorker, [1, 2, 3])

  expect(await begin(database, successor)).toBe(1)
  const awake = begin(lateWorker, late)
  await until(async () => {
    const waiting = 'SELECT 1 FROM pg_stat_activity WHERE wait_event_type = $1 AND query LIKE $2'
    return (await observer.query(waiting, ['Lock', '%order_line_tokens%'])).rowCount === 1
  })
  await replace(database, [10, 20])
  expect(await awake).toBe(0)
  await lateWorker.query('ROLLBACK')

  const { rows } = await database.query('SELECT line, cents FROM order_lines ORDER BY line')
  expect(rows).toEqual([
    { line: 0, cents: '10' },
    { line: 1, cents: '20' },
  ])
})
