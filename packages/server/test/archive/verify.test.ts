import { hash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PostgresServer } from '../../../../test/postgres/support/postgres-server.ts'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { exportStore, importStore, verify } from '../../src/archive/store-tools.ts'
import { openPostgresDisk } from '../../src/disk/postgres/postgres-disk.ts'
import { SCHEMA_VERSION } from '../../src/disk/schema-version.ts'
import { LeaderUnavailable } from '../../src/handoff/store.ts'
import { version } from '../../src/version.ts'
import { one, some } from '../store/conformance/driver.ts'
import { openAt, startOfTests } from './stores.ts'

/** Levels 0 and 1 of a task with a barrier: one partition done, one leased, one delayed, the rest not handed out. */
async function fill(location: Parameters<typeof openAt>[0]): Promise<void> {
  const driver = await openAt(location, startOfTests)
  await driver.callBack('orders', [...some(0, 5), one(1, 0), one(1, 1)])
  await driver.control({ verb: 'level-barrier', taskId: 'orders', enabled: true })
  const leases = (await driver.pull({ batch: 3 })).partitions.map(({ lease }) => lease?.id ?? '')
  await driver.settle(leases[0] ?? '')
  await driver.settle(leases[1] ?? '', { outcome: 'failed', checkpoint: 'half' })
  await driver.store.close()
}

/** The change to the rows, and the expected finding. */
const damages: [sql: string, found: string[]][] = [
  [
    `UPDATE task SET ready_partitions = 9 WHERE task_id = 'orders'`,
    ['task orders counts 9 ready, but its rows have 4'],
  ],
  [
    'UPDATE lane SET done_records = 1 WHERE level = 0',
    [
      'level 0 of task orders counts 1 records finished, but its rows have 100 + 0 purged',
      'level 0 of task orders counts 1 records done, but its rows have 100',
      'task orders counts 100 records done, but its rows have 1',
    ],
  ],
  [
    'UPDATE partition SET due_at = NULL WHERE idx = 2 AND lane = 1',
    ['partition orders-0-2 is leased, but its lease has no expiry, no id or no fencing token'],
  ],
  [
    'UPDATE partition SET fencing_token = NULL WHERE idx = 2 AND lane = 1',
    ['partition orders-0-2 is leased, but its lease has no expiry, no id or no fencing token'],
  ],
  [
    'UPDATE partition SET due_at = NULL WHERE idx = 1 AND lane = 1',
    ['partition orders-0-1 is delayed, but its back-off has no end'],
  ],
  [
    'UPDATE lane SET "cursor" = "cursor" + 1 WHERE level = 0',
    ['partition orders-0-3 is ready for its first hand-out at a position where no pull finds it'],
  ],
  [
    'UPDATE lane SET returned = 1 WHERE level = 0',
    [
      'level 0 of task orders has 1 waiting that came back, but its rows have 0',
      'level 0 of task orders has 1 waiting that did not come back, but its rows have 2',
    ],
  ],
  ['UPDATE task SET open_level = 1', ['the barrier of task orders is open up to 1, but 0 is unfinished']],
  [
    'DELETE FROM lane_range WHERE lane = 2',
    [
      'partition orders-1-0 is not among the indexes that were called back: a repeated call-back would store it twice',
      'partition orders-1-1 is not among the indexes that were called back: a repeated call-back would store it twice',
      'level 1 of task orders counts 2 partitions, but 0 indexes were called back',
    ],
  ],
  [
    'DELETE FROM partition WHERE lane = 2 AND idx = 1',
    [
      'level 1 of task orders counts 2 ready, but its rows have 1',
      'level 1 of task orders counts 200 records ready, but its rows have 100',
      'level 1 of task orders has 2 waiting that did not come back, but its rows have 1',
    ],
  ],
  ['DELETE FROM checkpoint', ['partition row 2 has a checkpoint according to its row, but there is none']],
  [
    'UPDATE checkpoint SET partition = 3',
    [
      'there is a checkpoint of partition row 3, which has none according to its row',
      'partition row 2 has a checkpoint according to its row, but there is none',
    ],
  ],
  [
    'UPDATE flushed SET next_partition = 7',
    ['partition orders-1-1 has an id that would also be assigned to a new partition'],
  ],
  [
    'UPDATE partition SET lane = 77 WHERE id = 7',
    expect.arrayContaining(['partition row 7 belongs to lane 77, which does not exist']),
  ],
  [
    'DELETE FROM task',
    [
      'lane 1 (level 0) belongs to task 1, which does not exist',
      'lane 2 (level 1) belongs to task 1, which does not exist',
    ].concat(
      [1, 2, 3, 4, 5].map((id) => `partition row ${id} belongs to lane 1, which does not exist`),
      [6, 7].map((id) => `partition row ${id} belongs to lane 2, which does not exist`),
      ['hour from 2026-05-28T20:00:00.000Z', 'minute from 2026-05-28T20:26:00.000Z'].map(
        (time) => `the throughput of the ${time} belongs to task 1, which does not exist`,
      ),
    ),
  ],
]

test.each(damages)('verify reports the damage of %s', async (sql, found) => {
  const data = await testFolder()
  await fill({ data })
  expect((await verify({ data })).findings).toEqual([])
  const db = new DatabaseSync(join(data, 'baton.db'))
  db.exec(sql)
  db.close()
  expect((await verify({ data })).findings).toEqual(found)
})

test('damage to the file is reported', async () => {
  const data = await testFolder()
  const driver = await openAt({ data }, startOfTests)
  await driver.callBack('orders', some(0, 2000))
  await driver.store.close()
  const path = join(data, 'baton.db')
  const bytes = readFileSync(path)
  // Pages in the middle: tables and indexes of partitions.
  bytes.fill(0xaa, 4096 * 40, 4096 * 44)
  writeFileSync(path, bytes)
  const outcome = await verify({ data }).then(
    ({ findings }) => findings.join('\n'),
    (error: Error) => error.message,
  )
  expect(outcome).toContain('damaged')
})

test('a file that is not a store is recognized', async () => {
  const folder = await testFolder()
  await expect(verify({ data: folder })).rejects.toThrow('baton.db does not exist; name the data folder')
  const other = join(folder, 'other.db')
  const db = new DatabaseSync(other)
  db.exec('CREATE TABLE something (a)')
  db.close()
  await expect(verify(other)).rejects.toThrow('is a database of another program')
  writeFileSync(join(folder, 'text'), 'hello\n')
  await expect(verify(join(folder, 'text'))).rejects.toThrow('is not an export of Baton')
  const old = join(folder, 'old.db')
  const older = new DatabaseSync(old)
  for (const table of ['task', 'lane', 'partition', 'pull_key']) older.exec(`CREATE TABLE ${table} (a)`)
  older.exec('PRAGMA user_version = 6')
  older.close()
  await expect(verify(old)).rejects.toThrow(
    `${old} was written by a version of Baton from before the first release`,
  )
})

test.each([
  [SCHEMA_VERSION + 1, `use a version of Baton that supports schema version ${SCHEMA_VERSION + 1}`],
  [SCHEMA_VERSION - 1, 'start this version of Baton with it once to upgrade it'],
])('a store of schema version %s is refused', async (schema, remedy) => {
  const data = await testFolder()
  await fill({ data })
  const db = new DatabaseSync(join(data, 'baton.db'))
  db.exec(`PRAGMA user_version = ${schema}`)
  db.close()
  await expect(verify({ data })).rejects.toThrow(
    `has schema version ${schema}, not ${SCHEMA_VERSION}; ${remedy}`,
  )
})

test('an export that was truncated, changed or written by another version is not imported', async () => {
  const data = await testFolder()
  await fill({ data })
  const folder = await testFolder()
  const file = join(folder, 'export.ndjson')
  await exportStore({ data }, { file })
  const text = readFileSync(file, 'utf8')
  const lines = text.trimEnd().split('\n')
  const changed = (name: string, content: string) => {
    const path = join(folder, name)
    writeFileSync(path, content)
    return path
  }
  const fewer = text.slice(0, text.indexOf('{"section":"audit"'))
  const refused: [string, string][] = [
    [changed('cut', lines.slice(0, -3).join('\n')), 'the file is incomplete'],
    [changed('edited', text.replace('results.orders', 'results.0rders')), 'the checksum does not match'],
    [changed('shorter', text.replace(/^\[7,.*\n/m, '')), 'the checksum does not match'],
    [changed('garbled', text.replace(/^\[7,/m, '[7,,')), 'the line cannot be read'],
    [
      changed('newer', text.replace(`"schema":${SCHEMA_VERSION}`, '"schema":4711')),
      `has schema version 4711, not ${SCHEMA_VERSION}; use the version of Baton that wrote it, ${version}`,
    ],
    [
      changed('unreleased', text.replace(`"schema":${SCHEMA_VERSION}`, '"version":1')),
      'was written by a version of Baton from before the first release',
    ],
    [
      changed('more', text.replace('"fields":["id","taskId"', '"fields":["id","taskId","colour"')),
      'tasks have the fields colour, which this program does not support',
    ],
    [
      changed('less', text.replace('"taskId",', '')),
      'tasks lack the fields taskId; export again with this version',
    ],
    [changed('longer', `${text}{}\n`), 'the file has data after its end'],
    [changed('fewer', `${fewer}{"end":{"sha256":"${hash('sha256', fewer)}"}}\n`), 'the file is incomplete'],
  ]
  const target = join(await testFolder(), 'target')
  for (const [path, reason] of refused) {
    await expect(importStore({ data: target }, { file: path })).rejects.toThrow(reason)
    await expect(verify(path)).rejects.toThrow(reason)
  }
  expect((await importStore({ data: target }, { file })).partitions).toBe(7)
  await expect(importStore({ data: target }, { file })).rejects.toThrow('is not empty: it has 1 task')
})

test('an export that contradicts itself is not imported', async () => {
  const data = await testFolder()
  await fill({ data })
  const db = new DatabaseSync(join(data, 'baton.db'))
  db.exec('UPDATE task SET ready_partitions = 9')
  db.close()
  const file = join(await testFolder(), 'export.ndjson.gz')
  await exportStore({ data }, { file })
  const target = join(await testFolder(), 'target')
  await expect(importStore({ data: target }, { file })).rejects.toThrow(
    'is inconsistent; nothing was imported: task orders counts 9 ready, but its rows have 4',
  )
})

test('a store that is in use is neither exported nor imported into', async () => {
  const data = await testFolder()
  const driver = await openAt({ data }, startOfTests)
  const file = join(await testFolder(), 'export.ndjson')
  await expect(exportStore({ data }, { file })).rejects.toThrow(
    'is in use by another Baton process; stop that process',
  )
  await driver.store.close()
  await exportStore({ data }, { file })
  const again = await openAt({ data }, startOfTests)
  await expect(importStore({ data }, { file })).rejects.toThrow(
    'is in use by another Baton process; stop that process',
  )
  await again.store.close()
})

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
})
afterAll(() => server.dispose())

test('on PostgreSQL, contradictions are reported, running nodes prevent an import, and a take-over aborts it', async () => {
  const { name, url } = await server.createDatabase()
  const location = { databaseUrl: url }
  await expect(verify(location)).rejects.toThrow('contains no data of Baton')
  await fill(location)
  expect((await verify(location)).findings).toEqual([])
  await server.query(`UPDATE baton.task SET ready_partitions = 9`, name)
  expect((await verify(location)).findings).toEqual(['task orders counts 9 ready, but its rows have 4'])
  await server.query(`UPDATE baton.task SET ready_partitions = 4`, name)

  const node = await openPostgresDisk({ url, node: { nodeId: 'node-7', url: '' } })
  const heartbeat = {
    instanceId: 'node-7',
    role: 'service' as const,
    pulls: 0,
    seenMillisAgo: { first: 2000, last: 2000 },
    node: { version: '0.1.0', startedAt: 1, draining: false, load: 12 },
  }
  await node.recordInstances([heartbeat], (await node.readLeaderRow()).now)
  await node.close()
  const file = join(await testFolder(), 'export.ndjson')
  await expect(exportStore(location, { file })).rejects.toThrow(
    /nodes are running on this database: node-7 \(seen \d s ago\)/,
  )
  await server.query(`UPDATE baton.instance SET draining = true`, name)
  await exportStore(location, { file })

  const other = await server.createDatabase()
  const target = { databaseUrl: other.url }
  // A node that starts while rows are written takes over: nothing of the import may remain.
  let tookOver: Promise<void> | undefined
  const importing = importStore(target, {
    file,
    progress: () => {
      tookOver ??= openAt(target, startOfTests).then(
        (driver) => driver.store.close(),
        // The import was faster, and leads.
        (error: unknown) => expect(error).toBeInstanceOf(LeaderUnavailable),
      )
    },
  })
  const outcome = await importing.then(
    () => 'imported',
    () => 'refused',
  )
  await tookOver
  const [row] = await server.query('SELECT count(*)::int AS tasks FROM baton.task', other.name)
  expect(row).toEqual({ tasks: outcome === 'imported' ? 1 : 0 })
  expect((await verify(target)).findings).toEqual([])
})
