import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { testFolder } from '../../../../test/support/test-folder.ts'

const MODULE = new URL('../../src/archive/export-file.ts', import.meta.url).href

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'a process that %s ends while it writes leaves no file',
  async (signal) => {
    const folder = await testFolder()
    const script = `
      const { PrivateOutput } = await import(${JSON.stringify(MODULE)})
      const { writeFileSync } = await import('node:fs')
      const output = new PrivateOutput(${JSON.stringify(join(folder, 'copy.db'))}, false)
      writeFileSync(output.temporary + '-journal', '')
      setInterval(() => {}, 1000)
      console.log('writing')
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
