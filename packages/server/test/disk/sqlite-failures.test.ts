import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { asUnavailable } from '../../src/disk/sqlite/errors.ts'
import { DataFolder } from '../../src/disk/sqlite/folder.ts'
import { SqliteConnection } from '../../src/disk/sqlite/sqlite-connection.ts'
import { openSqliteDisk } from '../../src/disk/sqlite/sqlite-disk.ts'
import { aTask, byId, rowChanges, rows } from './conformance/builders.ts'

let folder: string

beforeEach(async () => {
  folder = await testFolder()
})

const entry = (number: number, body: string) => ({ number, body, newRows: [], newKeys: [] })

test('a foreign program that writes into the data file makes calls unavailable, and they work again', async () => {
  const disk = await openSqliteDisk({ folder })
  await disk.open()
  await disk.append(entry(1, 'a'))
  const foreign = new DatabaseSync(join(folder, 'baton.db'))
  foreign.exec('BEGIN IMMEDIATE')
  for (const call of [
    () => disk.append(entry(2, 'b')),
    () => disk.flush(rowChanges({ tasks: byId(aTask(1)) }), 1),
    () => disk.stage(rows(1, 1, 1)),
    () => disk.probe(1),
  ])
    await expect(call()).rejects.toMatchObject({ name: 'StoreUnavailable', code: 'store_unavailable' })
  foreign.exec('COMMIT')
  foreign.close()
  expect(await disk.open()).toMatchObject({ last: 1, unflushed: ['a'] })
  expect(await disk.tasksById([1])).toEqual([])
  expect(await disk.partitionsById([1])).toEqual([])
  await disk.append(entry(2, 'c'))
  expect((await disk.open()).unflushed).toEqual(['a', 'c'])
  await disk.close()
})

const retention = { before: { minute: 1, hour: 1 }, most: null, limit: 1 }
const LOSS = "INSERT INTO throughput VALUES (1, 'minute', 0, 0, 1, 1); UPDATE flushed SET writes = writes - 1"

test.each([
  { call: 'retention', loss: LOSS, finish: '' },
  { call: 'the probe', loss: `BEGIN IMMEDIATE; ${LOSS}`, finish: 'COMMIT' },
])('rows that are lost before $call fails are missed by the next append', async ({ call, loss, finish }) => {
  const disk = await openSqliteDisk({ folder })
  await disk.open()
  await disk.append(entry(1, 'a'))
  await disk.flush(rowChanges(), 1)
  const foreign = new DatabaseSync(join(folder, 'baton.db'))
  foreign.exec(loss)
  const failing = call === 'retention' ? disk.forgetThroughput(retention) : disk.probe(1)
  await expect(failing).rejects.toMatchObject({ name: 'StoreUnavailable' })
  foreign.exec(finish)
  foreign.close()
  await expect(disk.append(entry(2, 'b'))).rejects.toMatchObject({ name: 'StoreUnavailable' })
  expect(await disk.open()).toMatchObject({ last: 1, unflushed: [] })
  await disk.append(entry(2, 'b'))
  await disk.close()
})

test('a folder that was removed has no space', async () => {
  const data = join(folder, 'data')
  const disk = await openSqliteDisk({ folder: data })
  await rename(data, join(folder, 'elsewhere'))
  expect(() => disk.hasSpace()).toThrow('no longer exists')
  await disk.close()
})

/** The connection alone, where the size of the file can be limited. */
describe('a disk that is full', () => {
  const open = () => {
    const data = new DataFolder(folder)
    data.lock()
    const db = data.open()
    const connection = new SqliteConnection(db, '')
    const limit = (pages: number) => {
      const { page_count: used } = db.prepare('PRAGMA page_count').get() as { page_count: number }
      db.exec(`PRAGMA max_page_count = ${used + pages}`)
    }
    const failure = (work: () => void): unknown => {
      try {
        work()
      } catch (error) {
        return asUnavailable(error)
      }
      return undefined
    }
    const count = (table: string) => db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.['rows']
    const close = () => {
      db.close()
      data.unlock()
    }
    return { connection, limit, failure, count, close }
  }

  test('is distinguished from a failing one, and nothing is half done', () => {
    const { connection, limit, failure, count, close } = open()
    connection.append(entry(1, 'a'))
    limit(2)
    const full = { name: 'StoreUnavailable', code: 'store_full' }
    expect(failure(() => connection.append({ ...entry(2, 'b'), newRows: rows(1, 1, 5000) }))).toMatchObject(
      full,
    )
    expect(connection.open()).toMatchObject({ last: 1, unflushed: ['a'] })
    expect(failure(() => connection.append(entry(2, 'x'.repeat(100_000))))).toMatchObject(full)
    expect(connection.open()).toMatchObject({ last: 1, unflushed: ['a'] })
    const tasks = Array.from({ length: 500 }, (_, at) => aTask(at + 1))
    expect(failure(() => connection.flush(rowChanges({ tasks: byId(...tasks) }), 1))).toMatchObject(full)
    expect(connection.open()).toMatchObject({ last: 1, unflushed: ['a'] })
    expect(count('task')).toBe(0)
    expect(count('partition')).toBe(0)
    limit(1_000_000)
    connection.flush(rowChanges({ tasks: byId(...tasks) }), 1)
    connection.append({ ...entry(2, 'b'), newRows: rows(1, 1, 5000) })
    expect(count('partition')).toBe(5000)
    close()
  })

  test('slots of flushed entries are reused, so settling needs no more space', () => {
    const { connection, limit, close } = open()
    for (let number = 1; number <= 50; number += 1) connection.append(entry(number, 'x'.repeat(3000)))
    connection.flush(rowChanges(), 50)
    limit(0)
    for (let round = 1; round <= 3; round += 1) {
      for (let number = 1; number <= 50; number += 1)
        connection.append(entry(50 * round + number, 'y'.repeat(4000)))
      connection.flush(rowChanges(), 50 * round + 50)
    }
    expect(connection.open()).toMatchObject({ last: 200, unflushed: [] })
    close()
  })
})
