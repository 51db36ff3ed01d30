import { execFile } from 'node:child_process'
import { cp, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { descriptors } from '../../packages/client/test/support/descriptors.ts'
import { startService } from '../../packages/client/test/support/service.ts'
import { fencesOf, readDocument, root } from '../docs/support/markdown.ts'
import { pythonProgram, withoutPython } from '../support/python.ts'
import { testFolder } from '../support/test-folder.ts'

const execute = promisify(execFile)

/** What Debian has for building and installing. */
const tools = ['build', 'setuptools', 'wheel', 'venv'] as const

/** What the README presupposes. */
const assumed = `
def read(table: str, partition: str) -> list[list[int]]:
    return [[0] * 20_000, [0] * 5_000]
`

/** The Python examples of a document, as one program. */
function programIn(path: string, url: string): string {
  const examples = fencesOf(readDocument(path)).filter(({ language }) => language === 'python')
  return examples.map(({ text }) => text.replaceAll('http://127.0.0.1:7070', url)).join('\n')
}

describe.skipIf(await withoutPython('the package of the Python client', ...tools))('baton-client', () => {
  test('is built as wheel and sdist, and runs its examples in an empty environment', async () => {
    const python = await pythonProgram(...tools)
    const folder = await testFolder()
    // A copy: building writes into the folder of the sources.
    const sources = join(folder, 'sources')
    await cp(join(root, 'clients/python'), sources, { recursive: true })
    await execute(python, ['-m', 'build', '--no-isolation', '--outdir', join(folder, 'dist'), sources])
    const built = (await readdir(join(folder, 'dist'))).toSorted()
    expect(built).toEqual(['baton-client-0.1.0.tar.gz', 'baton_client-0.1.0-py3-none-any.whl'])

    await execute(python, ['-m', 'venv', join(folder, 'environment')])
    const installed = (program: string) => join(folder, 'environment/bin', program)
    await execute(installed('pip'), ['install', '--no-index', join(folder, 'dist', built[1] ?? '')])

    const { url } = await startService()
    const readme = programIn('clients/python/README.md', url).replace('concurrency=8', 'until_idle=True')
    await writeFile(join(folder, 'readme.py'), `${assumed}${readme}`)
    await execute(installed('python'), ['-W', 'error', join(folder, 'readme.py')], { cwd: folder })
    expect(await new BatonClient(url).task('orders-2026-03')).toMatchObject({
      state: 'done',
      sealed: true,
      reported: { declared: 25_000, reported: 25_000, mismatched: 0 },
    })

    await writeFile(join(folder, 'guide.py'), programIn('docs/client-python.md', url))
    const { stdout } = await execute(installed('python'), ['-W', 'error', join(folder, 'guide.py')])
    expect(stdout).toBe('100 0\ndone\n')

    const [cron = ''] = programIn('docs/recipes.md', url).split('from airflow')
    await new BatonClient(url).callBack(descriptors('nightly', 3))
    await writeFile(join(folder, 'cron.py'), cron)
    await execute(installed('python'), ['-W', 'error', join(folder, 'cron.py')])
    expect(await new BatonClient(url).task('nightly')).toMatchObject({ state: 'done' })
  })
})

test('every operation, event and error of the Python client is described', () => {
  const guide = readDocument('docs/client-python.md')
  const client = readDocument('clients/python/src/baton_client/client.py')
  const operations = [...client.matchAll(/^ {4}def ([a-z]\w+)\(/gm)].map((match) => match[1] ?? '')
  const internal = ['once', 'close', 'call_back_bytes', 'headers', 'query', 'with_options']
  const named = operations.filter((name) => !internal.includes(name))
  expect(named.length).toBeGreaterThan(18)
  for (const name of named) expect(guide).toContain(`\`${name}\``)

  const kindsIn = (path: string, pattern: RegExp) =>
    [...readDocument(path).matchAll(pattern)].map((match) => match[1]).toSorted()
  expect(kindsIn('clients/python/src/baton_client/events.py', /kind: ClassVar\[str\] = "(\w+)"/g)).toEqual(
    kindsIn('packages/client/src/worker-options.ts', /\| (?:\{ |\{\n\s+)readonly kind: '(\w+)'/g),
  )
  expect(kindsIn('clients/python/src/baton_client/errors.py', /^class (\w+Error)/gm)).toEqual(
    kindsIn('packages/client/src/errors.ts', /^export (?:abstract )?class (\w+Error)/gm),
  )
})
