import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { StoreRefused } from '../../src/handoff/store.ts'
import { openEmbeddedStore } from '../../src/open-store.ts'
import { Driver, some } from './conformance/driver.ts'
import { TestClock, testPolicy } from './conformance/harness.ts'
import { SeparateStore } from './support/separate-store.ts'

let folder: string

beforeEach(async () => {
  folder = await testFolder()
})

const open = (path = folder) => openEmbeddedStore({ folder: path, policy: testPolicy })

test('closing waits for a call-back that is being written', async () => {
  const store = await open()
  const driver = new Driver({ store, reopen: async () => {}, dispose: async () => {} }, new TestClock())
  const writing = driver.callBack('large', some(0, 30_000))
  await store.close()
  expect(await writing).toMatchObject({ accepted: 30_000 })
  await expect(driver.pull()).rejects.toMatchObject({ code: 'store_unavailable' })
})

test('a foreign program that writes into the data file makes requests unavailable, not wait', async () => {
  const store = await open()
  const foreign = new DatabaseSync(join(folder, 'baton.db'))
  foreign.exec('BEGIN IMMEDIATE')
  await expect(store.probe()).rejects.toMatchObject({ code: 'store_unavailable' })
  foreign.exec('COMMIT')
  foreign.close()
  await store.probe()
  await store.close()
})

describe('one process per data folder', () => {
  test('a second opening is refused, with a remedy', async () => {
    const store = await open()
    const refused = await open().catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(StoreRefused)
    expect(String(refused)).toContain(folder)
    expect(String(refused)).toContain('--data')
    await store.close()
  })

  test('an opening from another process is refused, and the first continues', async () => {
    const store = await open()
    await expect(SeparateStore.open(folder)).rejects.toMatchObject({
      name: 'StoreRefused',
      message: expect.stringContaining('in use by another Baton'),
    })
    await store.probe()
    await store.close()
  })

  test('a process that was killed leaves no lock behind', async () => {
    const killed = await SeparateStore.open(folder)
    await expect(open()).rejects.toBeInstanceOf(StoreRefused)
    await killed.kill()
    const store = await open()
    expect(await store.audit()).toEqual([])
    await store.close()
  })

  test('a store that was closed can be opened at once', async () => {
    for (let times = 0; times < 3; times += 1) await (await open()).close()
  })
})

describe('a folder that must not be used is refused', () => {
  test('with a newer schema, naming the required and the known version', async () => {
    await (await open()).close()
    const db = new DatabaseSync(join(folder, 'baton.db'))
    db.exec('PRAGMA user_version = 4711')
    db.close()
    const refused = await open().catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(StoreRefused)
    expect(String(refused)).toMatch(
      /schema version 4711.*supports versions up to \d+; start a version of Baton that supports/,
    )
  })

  test('and released for other processes', async () => {
    await (await open()).close()
    const db = new DatabaseSync(join(folder, 'baton.db'))
    const { user_version: version } = db.prepare('PRAGMA user_version').get() ?? {}
    db.exec('PRAGMA user_version = 4711')
    await expect(open()).rejects.toBeInstanceOf(StoreRefused)
    db.exec(`PRAGMA user_version = ${version}`)
    db.close()
    await (await open()).close()
  })

  const refusalOf = async (path?: string) => {
    const refused = await open(path).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(StoreRefused)
    return (refused as Error).message
  }

  test('if it is a file', async () => {
    const path = join(folder, 'file')
    await writeFile(path, '')
    const refusal = await refusalOf(path)
    expect(refusal).toContain(`the data folder ${path} cannot be used: a file with this name exists`)
    expect(refusal).toContain('--data')
  })

  test.each(['baton.db', 'baton.lock'])(
    'with a %s that is not a database, which stays unchanged',
    async (name) => {
      const notes = 'these are somebody’s notes, not a database'.repeat(200)
      await writeFile(join(folder, name), notes)
      expect(await refusalOf()).toBe(
        `the data folder ${folder} cannot be used: ${name} is not a database and was not changed; ` +
          'move the file to another place, or choose another folder with --data',
      )
      expect(await readFile(join(folder, name), 'utf8')).toBe(notes)
    },
  )

  test('with a damaged file', async () => {
    await (await open()).close()
    const path = join(folder, 'baton.db')
    const bytes = await readFile(path)
    await writeFile(path, bytes.fill(0xff, 100, 4096))
    expect(await refusalOf()).toBe(
      `the data folder ${folder} cannot be used: baton.db is damaged; ` +
        'restore it from a backup, or choose another folder with --data',
    )
  })

  test.each([
    ['that looks new', 'CREATE TABLE note (text)'],
    ['that has a version of its own', 'CREATE TABLE note (text); PRAGMA user_version = 2'],
    ['with a table that is called like one of ours', 'CREATE TABLE task (id); PRAGMA user_version = 1'],
    ['that has nothing but a version', 'PRAGMA user_version = 2'],
    ['of a version beyond ours', 'CREATE TABLE note (text); PRAGMA user_version = 4711'],
  ])('with the database of another program %s, which stays unchanged', async (_, sql) => {
    const path = join(folder, 'baton.db')
    const db = new DatabaseSync(path)
    db.exec(sql)
    db.close()
    const before = await readFile(path)
    expect(await refusalOf()).toBe(
      `${path} is a database of another program and was not changed; ` +
        'move it to another place, or choose another folder with --data',
    )
    expect(await readFile(path)).toEqual(before)
  })
})

test('a folder that was removed accepts no more work', async () => {
  const separate = await SeparateStore.open(join(folder, 'data'))
  const driver = new Driver(
    { store: separate.store, reopen: async () => {}, dispose: async () => {} },
    new TestClock(),
  )
  await driver.callBack('a', some(0, 1))
  await rename(join(folder, 'data'), join(folder, 'elsewhere'))
  // Disk space is checked periodically; from the next check on nothing is accepted.
  let refused: unknown
  while (refused === undefined)
    refused = await driver.callBack('b', some(0, 1)).then(
      () => undefined,
      (error) => error,
    )
  expect(refused).toMatchObject({
    name: 'StoreUnavailable',
    message: expect.stringContaining('no longer exists'),
  })
  await expect(driver.pull()).rejects.toMatchObject({ name: 'StoreUnavailable' })
  await separate.kill()
})

test('folders that do not exist yet are created', async () => {
  const store = await open(join(folder, 'some', 'where'))
  await store.probe()
  await store.close()
})
