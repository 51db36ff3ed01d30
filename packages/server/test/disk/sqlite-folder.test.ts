import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { SCHEMA_VERSION } from '../../src/disk/schema-version.ts'
import { openSqliteDisk } from '../../src/disk/sqlite/sqlite-disk.ts'
import { StoreRefused } from '../../src/handoff/store.ts'

let folder: string

beforeEach(async () => {
  folder = await testFolder()
})

const open = (path = folder) => openSqliteDisk({ folder: path })

const refusalOf = async (path?: string) => {
  const refused = await open(path).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(StoreRefused)
  return (refused as Error).message
}

const inFile = (sql: string) => {
  const db = new DatabaseSync(join(folder, 'baton.db'))
  db.exec(sql)
  db.close()
}

test('folders that do not exist yet are created', async () => {
  const disk = await open(join(folder, 'some', 'where'))
  await disk.probe(1)
  await disk.close()
})

test('a folder that was closed can be opened at once, one that is open cannot', async () => {
  for (let times = 0; times < 3; times += 1) await (await open()).close()
  const disk = await open()
  expect(await refusalOf()).toBe(
    `the data folder ${folder} is in use by another Baton process; stop that process, or choose another folder with --data`,
  )
  await disk.close()
  await expect(disk.probe(1)).rejects.toMatchObject({ code: 'store_unavailable' })
})

describe('a folder that must not be used is refused', () => {
  test('with a newer schema, and released', async () => {
    await (await open()).close()
    inFile('PRAGMA user_version = 4711')
    expect(await refusalOf()).toMatch(
      new RegExp(`schema version 4711.*supports versions up to ${SCHEMA_VERSION}; start a version of Baton`),
    )
    inFile(`PRAGMA user_version = ${SCHEMA_VERSION}`)
    await (await open()).close()
  })

  test('from before the first release, which stays unchanged', async () => {
    inFile(`CREATE TABLE task (id); CREATE TABLE lane (id); CREATE TABLE partition (id); CREATE TABLE pull_key (id);
      PRAGMA user_version = 9`)
    const path = join(folder, 'baton.db')
    const before = await readFile(path)
    expect(await refusalOf()).toBe(
      `the data folder ${folder} was written by a version of Baton from before the first release, ` +
        'which this program cannot read; choose another folder with --data',
    )
    expect(await readFile(path)).toEqual(before)
  })

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
      const notes = 'these are notes, not a database'.repeat(200)
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
    inFile(sql)
    const path = join(folder, 'baton.db')
    const before = await readFile(path)
    expect(await refusalOf()).toBe(
      `${path} is a database of another program and was not changed; ` +
        'move it to another place, or choose another folder with --data',
    )
    expect(await readFile(path)).toEqual(before)
  })
})
