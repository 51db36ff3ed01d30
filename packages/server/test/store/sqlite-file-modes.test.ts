import { chmod, mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ServiceProcess } from '../../../../test/support/service-process.ts'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { openEmbeddedStore } from '../../src/open-store.ts'
import { some } from './conformance/driver.ts'
import { testPolicy } from './conformance/harness.ts'
import { driverOf } from './driven-store.ts'
import { SeparateStore } from './support/separate-store.ts'

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)

async function modesIn(folder: string): Promise<Record<string, string>> {
  const names = await readdir(folder)
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await modeOf(join(folder, name))])),
  )
}

async function warningsOfOpening(folder: string): Promise<string[]> {
  const warnings: string[] = []
  const store = await openEmbeddedStore({ folder, policy: testPolicy, warn: (text) => warnings.push(text) })
  await store.close()
  return warnings
}

const whileOpen = { 'baton.db': '600', 'baton.db-shm': '600', 'baton.db-wal': '600', 'baton.lock': '600' }

test.each(['0000', '0777'])(
  'a new folder and its files are private to the user under a umask of %s',
  async (umask) => {
    const folder = join(await testFolder(), 'data')
    const separate = await SeparateStore.open(folder, { umask })
    await driverOf(separate.store).callBack('a', some(0, 3))
    expect(await modeOf(folder)).toBe('700')
    expect(await modesIn(folder)).toMatchObject(whileOpen)
    await separate.close()
    expect(await warningsOfOpening(folder)).toEqual([])
  },
)

test('files that others could read are restricted, with a warning', async () => {
  const folder = await testFolder()
  await warningsOfOpening(folder)
  await chmod(join(folder, 'baton.db'), 0o644)
  await chmod(join(folder, 'baton.lock'), 0o640)
  // The other files of a database have its mode.
  expect(await warningsOfOpening(folder)).toEqual([
    `files in ${folder} were accessible to other users; their permissions were restricted: baton.db (mode 644), ` +
      'baton.db-wal (mode 644), baton.db-shm (mode 644), baton.lock (mode 640), baton.lock-journal (mode 640)',
  ])
  expect(await warningsOfOpening(folder)).toEqual([])
  expect(await modesIn(folder)).toEqual({ 'baton.db': '600', 'baton.lock': '600' })
})

test('an existing folder and foreign files in it are unchanged, with a warning', async () => {
  const folder = join(await testFolder(), 'shared')
  await mkdir(folder)
  await chmod(folder, 0o775)
  await writeFile(join(folder, 'notes'), '')
  await chmod(join(folder, 'notes'), 0o644)
  const told = `the data folder ${folder} is accessible to other users (mode 775): run chmod 700 ${folder}`
  expect(await warningsOfOpening(folder)).toEqual([told])
  expect(await modeOf(folder)).toBe('775')
  expect(await modesIn(folder)).toEqual({ 'baton.db': '600', 'baton.lock': '600', notes: '644' })
})

test('the service logs the warning about file modes', async () => {
  const folder = await testFolder()
  await chmod(folder, 0o755)
  const service = await ServiceProcess.started([], folder)
  await service.logged('is accessible to other users (mode 755): run chmod 700')
})

test('a file of another user is not changed', async () => {
  const folder = await testFolder()
  const path = join(folder, 'baton.db')
  await writeFile(path, 'these are notes, not a database'.repeat(200))
  await chmod(path, 0o644)
  await expect(warningsOfOpening(folder)).rejects.toMatchObject({ name: 'StoreRefused' })
  expect(await modeOf(path)).toBe('644')
})
