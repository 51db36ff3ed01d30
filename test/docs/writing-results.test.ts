import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BatonClient } from '@baton/client'
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startService } from '../../packages/client/test/support/service.ts'
import { PostgresServer } from '../postgres/support/postgres-server.ts'
import { pythonProgram, withoutPython } from '../support/python.ts'
import { testFolder } from '../support/test-folder.ts'
import { until } from '../support/until.ts'
import { fencesOf, readDocument, root, sectionNamed } from './support/markdown.ts'

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

const cannotRunPython = await withoutPython('the handler of docs/writing-results.md', 'psycopg')

/** Starts a handler of the document, which ends with the test. */
async function startHandler(language: 'ts' | 'python', url: string): Promise<void> {
  const folder = await testFolder()
  const fences = fencesOf(sectionNamed(document, 'A handler').text)
  const program = fences.find((fence) => fence.language === language)?.text ?? ''
  const file = join(folder, language === 'ts' ? 'worker.mjs' : 'worker.py')
  await writeFile(file, program.replace('http://127.0.0.1:7070', url))
  await writeFile(join(folder, 'write.sql'), statementsOf('One row per partition')[1] ?? '')
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  const env = {
    ...process.env,
    DATABASE_URL: server.url(),
    NODE_OPTIONS: '--conditions=baton-source',
    PYTHONPATH: join(root, 'clients/python/src'),
    PYTHONDONTWRITEBYTECODE: '1',
  }
  const command = language === 'ts' ? process.execPath : await pythonProgram('psycopg')
  const worker = spawn(command, [file], { cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'] })
  onTestFinished(async () => {
    const ended = once(worker, 'exit')
    worker.kill('SIGTERM')
    await ended
  })
}

test.for(['ts', 'python'] as const)('the %s handler gives way to later leases', async (language, context) => {
  if (language === 'python' && cannotRunPython) context.skip()
  const [table = ''] = statementsOf('One row per partition')
  const database = await connect()
  await database.query(`DROP TABLE IF EXISTS order_totals; DROP SCHEMA IF EXISTS results CASCADE;
    CREATE SCHEMA results; CREATE TABLE results.orders (partition_name text, cents bigint);
    INSERT INTO results.orders VALUES ('orders-0-0', 5), ('orders-0-1', 20), ('orders-0-1', 30)`)
  await database.query(table)
  const later = Number.MAX_SAFE_INTEGER
  await database.query('INSERT INTO order_totals VALUES ($1, $2, 7)', ['orders-0-0', later])
  const { url } = await startService()
  const client = new BatonClient({ url })
  const descriptor = { taskId: 'orders', computeTableName: 'results.orders', priorityLevel: 0 }
  await client.callBack([
    { ...descriptor, partition_name: 'orders-0-0', record_count: 1 },
    { ...descriptor, partition_name: 'orders-0-1', record_count: 2 },
  ])
  await startHandler(language, url)

  const partitions = async () => (await client.partitions('orders')).partitions
  const released = await until(async () => {
    const [first, second] = await partitions()
    return second?.state === 'done' && first?.lastReason === 'a later lease has written' ? first : undefined
  })
  expect(released.state).not.toBe('done')
  expect((await partitions())[1]).toMatchObject({ reportedRecords: 2 })
  const { rows } = await database.query('SELECT * FROM order_totals ORDER BY 1')
  expect(rows).toEqual([
    { partition_name: 'orders-0-0', fencing_token: String(later), cents: '7' },
    { partition_name: 'orders-0-1', fencing_token: expect.any(String), cents: '50' },
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
