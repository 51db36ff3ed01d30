import { execFile } from 'node:child_process'
import { globSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { startService } from '../../packages/client/test/support/service.ts'
import { pythonIn } from '../../release/python.ts'
import { readDocument, root } from '../docs/support/markdown.ts'
import { pythonProgram, withoutPython } from '../support/python.ts'
import { testFolder } from '../support/test-folder.ts'
import { runPythonExamples } from './python-examples.ts'

const execute = promisify(execFile)
const sources = join(root, 'clients/python/src')
const cannotCheck = await withoutPython('the types of the Python client', 'mypy')
const cannotRunPrograms = await withoutPython('programs that use the Python client')

test.skipIf(cannotRunPrograms)('the examples of the README and the guides run', async () => {
  const { url } = await startService()
  await runPythonExamples(url, async (program) => {
    const options = { env: { ...process.env, PYTHONPATH: sources, PYTHONDONTWRITEBYTECODE: '1' } }
    return (await execute(await pythonProgram(), ['-W', 'error', '-c', program], options)).stdout
  })
})

test.skipIf(cannotCheck)(
  'types are complete, for Python 3.10, and those of programs are checked by them',
  async () => {
    const folder = await testFolder()
    const programs = ['clients/python/README.md', 'docs/client-python.md'].map((document, at) => {
      const path = join(folder, `program_${at}.py`)
      const read = 'def read(table: str, partition: str) -> list[list[int]]: return []\n'
      writeFileSync(path, read + pythonIn(document, 'http://127.0.0.1:7070'))
      return path
    })
    const wrong = join(folder, 'wrong.py')
    writeFileSync(wrong, 'from baton_client import Client\nClient(7)\n')
    const options = ['--strict', '--python-version', '3.10', '--cache-dir', join(folder, 'cache')]
    const checked = execute(
      await pythonProgram('mypy'),
      ['-m', 'mypy', ...options, sources, ...programs, wrong],
      { env: { ...process.env, MYPYPATH: sources }, cwd: folder },
    )
    // The only complaint is about the program that is wrong.
    await expect(checked).rejects.toMatchObject({
      stdout: expect.stringMatching(
        /^wrong\.py:2: error: .*\[arg-type\]\nFound 1 error in 1 file \(checked [1-9]\d source files\)\n$/,
      ),
    })
  },
)

test.skipIf(cannotRunPrograms)(
  'a handler that is no function is refused, and no connection stays open',
  async () => {
    const program = `
import gc, socket, sys, threading
from baton_client import Client, UnreachableError, Worker

try:
    Worker("http://127.0.0.1:7070", None)
    sys.exit("it was accepted")
except TypeError as error:
    print(error)
warned = []
sys.unraisablehook = warned.append
listening = socket.create_server(("127.0.0.1", 0))
def hang_up():
    connection, _ = listening.accept()
    connection.recv(65536)
    connection.close()
threading.Thread(target=hang_up).start()
try:
    Client(f"http://127.0.0.1:{listening.getsockname()[1]}", retry_for_seconds=0).whoami()
except UnreachableError:
    print("no answer")
gc.collect()
print(len(warned))
`
    const options = { env: { ...process.env, PYTHONPATH: sources, PYTHONDONTWRITEBYTECODE: '1' } }
    const { stdout } = await execute(await pythonProgram(), ['-W', 'error', '-c', program], options)
    expect(stdout).toBe('the handler must be a function\nno answer\n0\n')
  },
)

test.skipIf(cannotRunPrograms)('the sources have the syntax of Python 3.10', async () => {
  const parse =
    'import ast, sys\nfor path in sys.argv[1:]: ast.parse(open(path, encoding="utf-8").read(), path, feature_version=(3, 10))'
  const files = globSync('**/*.py', { cwd: sources }).map((path) => join(sources, path))
  expect(files.length).toBeGreaterThan(15)
  const python = await pythonProgram()
  await execute(python, ['-c', parse, ...files])
  const newer = join(await testFolder(), 'newer.py')
  writeFileSync(newer, 'try: pass\nexcept* ValueError: pass\n')
  await expect(execute(python, ['-c', parse, newer])).rejects.toThrow('SyntaxError')
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
