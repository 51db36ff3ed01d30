import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startService } from '../../packages/client/test/support/service.ts'
import { buildPython, installWheel, pythonTools } from '../../release/python.ts'
import { withoutPython } from '../support/python.ts'
import { testFolder } from '../support/test-folder.ts'
import { runPythonExamples } from './python-examples.ts'

const cannotRun = await withoutPython('the package of the Python client', ...pythonTools)

test.skipIf(cannotRun)(
  'baton-client is built as wheel and sdist, and runs its examples in an empty environment',
  async () => {
    const folder = await testFolder()
    const dist = join(folder, 'dist')
    const { wheel, sdist } = await buildPython(folder, dist)
    expect([sdist, wheel]).toEqual(['baton-client-0.1.0.tar.gz', 'baton_client-0.1.0-py3-none-any.whl'])
    const run = await installWheel(folder, join(dist, wheel))
    const typed =
      'from importlib.resources import files; print(files("baton_client").joinpath("py.typed").is_file())'
    expect(await run(typed)).toBe('True\n')
    const { url } = await startService()
    await runPythonExamples(url, run)
  },
)
