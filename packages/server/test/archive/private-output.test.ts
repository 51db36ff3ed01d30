import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'
import { backUp, exportStore, importStore, verify } from '../../src/archive/store-tools.ts'
import { openSqliteDisk } from '../../src/disk/sqlite/sqlite-disk.ts'

const MODULE = new URL('../../src/archive/private-output.ts', import.meta.url).href

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'a process that %s ends while it writes leaves no file',
  async (signal) => {
    const folder = await testFolder()
    const script = `
      const { writePrivately } = await import(${JSON.stringify(MODULE)})
      const { writeFileSync } = await import('node:fs')
      setInterval(() => {}, 1000)
      await writePrivately(${JSON.stringify(join(folder, 'copy.db'))}, false, async (path) => {
        writeFileSync(path + '-journal', '')
        console.log('writing')
        await new Promise(() => {})
      })
    `
    const child = spawn(
      process.execPath,
      ['--conditions=baton-source', '--input-type=module', '--eval', script],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    await once(child.stdout, 'data')
    expect(await readdir(folder)).toHaveLength(2)
    child.kill(signal)
    expect((await once(child, 'close'))[1]).toBe(signal)
    expect(await readdir(folder)).toEqual([])
  },
)

test('pipes and stdout are refused, as input and as output', async () => {
  const folder = await testFolder()
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  const data = join(folder, 'data')
  await (await openSqliteDisk({ folder: data })).close()
  for (const work of [
    () => exportStore({ data }, { file: '-' }),
    () => backUp({ data }, { file: '-' }),
    () => exportStore({ data }, { file: pipe, mayReplace: true }),
    () => backUp({ data }, { file: pipe, mayReplace: true }),
    () => importStore({ data }, { file: pipe }),
    () => verify(pipe),
  ])
    await expect(work()).rejects.toThrow('is not a regular file')
  expect(existsSync('-')).toBe(false)
  expect(await readdir(folder)).toEqual(['data', 'pipe'])
})
