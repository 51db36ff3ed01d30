import { join } from 'node:path'
import { BatonClient } from '@baton/client'
import { describe, expect, test } from 'vitest'
import { descriptors } from '../../packages/client/test/support/descriptors.ts'
import { startService } from '../../packages/client/test/support/service.ts'
import { buildPython, installWheel, pythonHandOff, pythonIn, pythonTools } from '../../release/python.ts'
import { readDocument } from '../docs/support/markdown.ts'
import { withoutPython } from '../support/python.ts'
import { testFolder } from '../support/test-folder.ts'

const cannotRun = await withoutPython('the package of the Python client', ...pythonTools)

describe.skipIf(cannotRun)('baton-client', () => {
  test('is built as wheel and sdist, and runs its examples in an empty environment', async () => {
    const folder = await testFolder()
    const dist = join(folder, 'dist')
    const { wheel, sdist } = await buildPython(folder, dist)
    expect([sdist, wheel]).toEqual(['baton-client-0.1.0.tar.gz', 'baton_client-0.1.0-py3-none-any.whl'])
    const run = await installWheel(folder, join(dist, wheel))

    const { url } = await startService()
    await run(pythonHandOff(url))
    expect(await new BatonClient(url).task('orders-2026-03')).toMatchObject({
      state: 'done',
      sealed: true,
      reported: { declared: 25_000, reported: 25_000, mismatched: 0 },
    })

    expect(await run(pythonIn('docs/client-python.md', url))).toBe('100 0\ndone\n')

    const [cron = ''] = pythonIn('docs/workers.md', url).split('from airflow')
    await new BatonClient(url).callBack(descriptors('nightly', 3))
    await run(cron)
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
