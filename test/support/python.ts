import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

/** Debian's packages of the modules that tests need, besides Python itself. */
const PACKAGES = {
  build: 'python3-build',
  setuptools: 'python3-setuptools',
  wheel: 'python3-wheel',
  venv: 'python3-venv',
  psycopg: 'python3-psycopg',
  mypy: 'mypy',
}

export type PythonModule = keyof typeof PACKAGES

/** Python is not on this machine, and the tests may not install it. */
export class PythonMissing extends Error {}

/**
 * A Python 3.10 or newer with these modules. On Debian it is installed if the tests have the permission; the
 * lock is for test files that run in parallel.
 */
export function pythonProgram(...modules: PythonModule[]): Promise<string> {
  const key = modules.join()
  const known = programs.get(key) ?? foundOrInstalled(modules)
  programs.set(key, known)
  return known
}

const programs = new Map<string, Promise<string>>()

async function foundOrInstalled(modules: readonly PythonModule[]): Promise<string> {
  const found = await usable(modules)
  if (found !== undefined) return found
  const packages = ['python3', ...modules.map((module) => PACKAGES[module])]
  if (process.getuid?.() === 0 && onPath('apt-get') !== undefined) {
    const script = `apt-get update && apt-get install --yes --no-install-recommends ${packages.join(' ')}`
    await execute('flock', [join(tmpdir(), 'baton-python.lock'), 'sh', '-c', script])
    const installed = await usable(modules)
    if (installed !== undefined) return installed
  }
  throw new PythonMissing(`there is no Python 3.10 or newer with ${packages.join(', ')}`)
}

const onPath = (name: string) =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path))

/** The interpreter itself: what a search path has may be a script that looks for it at each start. */
async function usable(modules: readonly string[]): Promise<string | undefined> {
  const imports = ['sys', ...modules].join(', ')
  const program = `import ${imports}; assert sys.version_info >= (3, 10); print(sys.executable)`
  for (const python of ['python3', '/usr/bin/python3']) {
    try {
      return (await execute(python, ['-c', program])).stdout.trim()
    } catch {
      // Not this one.
    }
  }
  return undefined
}

/** Whether tests cannot run because there is no Python. Then a line says what is not run. */
export async function withoutPython(what: string, ...modules: PythonModule[]): Promise<boolean> {
  try {
    await pythonProgram(...modules)
    return false
  } catch (error) {
    if (!(error instanceof PythonMissing)) throw error
    process.stdout.write(`${error.message}: not run: ${what}\n`)
    return true
  }
}
