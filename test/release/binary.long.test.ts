import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { version } from '@baton/server/version'
import { expect, onTestFinished, test, vi } from 'vitest'
import { descriptors } from '../../packages/client/test/support/descriptors.ts'
import { root } from '../../release/packages.ts'
import { differencesInFirstHandOff } from '../readme/support/first-hand-off.ts'
import { testFolder } from '../support/test-folder.ts'

// Bundling and copying Node takes seconds, and minutes on a busy machine.
vi.setConfig({ testTimeout: 600_000 })

const run = promisify(execFile)

test('the one file serves, works, makes a backup, and keeps its data over a kill', async () => {
  const folder = await testFolder()
  await run(process.execPath, ['--conditions=baton-source', join(root, 'release/binary.ts'), folder])
  const file = join(folder, 'baton')
  // An empty environment: no Node, and nothing of this checkout.
  const options = { cwd: folder, env: {} }
  const baton = async (...args: string[]) => (await run(file, args, options)).stdout
  expect(await baton('--version')).toBe(`${version}\n`)

  const serve = async () => {
    const child = spawn(file, ['serve', '--port', '0', '--log-level', 'warn'], {
      ...options,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    for await (const line of createInterface({ input: child.stdout }))
      return { child, url: line.split(' ').at(-1) ?? '' }
    throw new Error('the service ended before it listened')
  }

  const first = await serve()
  expect(await differencesInFirstHandOff(first.url)).toEqual([])
  const page = await (await fetch(first.url)).text()
  const script = /src="\.?\/?(assets\/[^"]+\.js)"/.exec(page)?.[1]
  const { headers } = await fetch(`${first.url}/${script}`, { headers: { 'accept-encoding': 'br' } })
  expect(headers.get('content-type')).toContain('text/javascript')
  expect(headers.get('content-encoding')).toBe('br')

  const called = descriptors('large', 30_000).map((each) => JSON.stringify(each))
  await writeFile(join(folder, 'large.ndjson'), called.join('\n'))
  await baton('call-back', 'large.ndjson', '--url', first.url)
  await baton('work', '--url', first.url, '--task', 'orders-2026-03', '--until-idle', '--', '/bin/true')
  await baton('backup', 'copy.db')
  expect(await baton('verify', 'copy.db')).toBe('OK: 2 tasks, 30,003 partitions in copy.db\n')

  first.child.kill('SIGKILL')
  await once(first.child, 'exit')
  const second = await serve()
  const tasks = JSON.parse(await baton('tasks', 'orders-2026-03', '--json', '--url', second.url))
  expect(tasks).toMatchObject({ state: 'done', partitions: { total: 3, done: 3 } })
  second.child.kill('SIGTERM')
  expect(await once(second.child, 'exit')).toEqual([0, null])
})
