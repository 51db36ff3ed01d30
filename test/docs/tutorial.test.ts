import { execFile } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { startService } from '../../packages/client/test/support/service.ts'
import { PostgresServer } from '../postgres/support/postgres-server.ts'
import { pythonProgram, withoutPython } from '../support/python.ts'
import { testFolder } from '../support/test-folder.ts'
import { fencesOf, readDocument, root } from './support/markdown.ts'

const END = '--- end of a block ---'

test.skipIf(await withoutPython('docs/tutorial.md', 'psycopg'))(
  'every block of the tutorial runs, and prints what it shows',
  async () => {
    const document = readDocument('docs/tutorial.md')
    const folder = await testFolder()
    for (const [, name = '', text = ''] of document.matchAll(/^`(\S+)`:\n\n```\w+\n([\s\S]*?)^```$/gm))
      await writeFile(join(folder, name), text)

    const server = await PostgresServer.start()
    onTestFinished(() => server.dispose())
    // After a start no lease expires for its length, a minute at most. The tutorial gives its task the same length.
    const { url } = await startService('--lease-seconds', '5')
    const fences = fencesOf(document)
    const scripts = fences.filter(({ language }) => language === 'sh').map(({ text }) => text)
    const output = await run(
      scripts
        .join(`\necho '${END}'\n`)
        .replace(/(?<=export BATON=).*/, url)
        .replace(/(?<=export DATABASE_URL=).*/, server.url()),
      folder,
    )
    // On a busy machine, a worker may also be too late to renew another lease.
    const again = output.replace(/(?<=handed out more than once: )\[.*'orders-0-0'.*\]/, "['orders-0-0']")
    const printed = again.split(`${END}\n`).filter((text) => text !== '')
    expect(printed).toEqual(fences.filter(({ language }) => language === 'text').map(({ text }) => text))
    // Files and commands: nothing is shown that is not run.
    const shown = fences.map(({ language }) => language)
    expect(shown.filter((language) => !['sh', 'text', 'python', 'js'].includes(language))).toEqual([])
    expect(document.match(/^`\S+`:$/gm)).toHaveLength(
      shown.filter((language) => language === 'python' || language === 'js').length,
    )
  },
)

/** Runs commands in the folder of a reader who has installed both clients. */
async function run(commands: string, folder: string): Promise<string> {
  const programs = join(folder, 'bin')
  await mkdir(programs)
  const python = await pythonProgram('psycopg')
  await writeFile(join(programs, 'python3'), `#!/bin/sh\nexec ${python} "$@"\n`, { mode: 0o755 })
  await symlink(process.execPath, join(programs, 'node'))
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  const environment = {
    ...process.env,
    PATH: `${programs}:${process.env['PATH'] ?? ''}`,
    PYTHONPATH: join(root, 'clients/python/src'),
    PYTHONDONTWRITEBYTECODE: '1',
    NODE_OPTIONS: '--conditions=baton-source',
  }
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', commands], {
    cwd: folder,
    env: environment,
  })
  return stdout
}
