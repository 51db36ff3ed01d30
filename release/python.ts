import { execFile } from 'node:child_process'
import { cpSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fencesOf, readDocument } from '../test/docs/support/markdown.ts'
import { pythonProgram } from '../test/support/python.ts'
import { root } from './packages.ts'

const execute = promisify(execFile)

/** The modules that build and install the Python client. */
export const pythonTools = ['build', 'setuptools', 'wheel', 'venv'] as const

/** Builds wheel and sdist of the Python client into `dist`, and returns their names. */
export async function buildPython(scratch: string, dist: string): Promise<{ wheel: string; sdist: string }> {
  // A copy: building writes into the folder of the sources.
  const sources = join(scratch, 'sources')
  cpSync(join(root, 'clients/python'), sources, { recursive: true })
  const python = await pythonProgram(...pythonTools)
  await execute(python, ['-m', 'build', '--no-isolation', '--outdir', dist, sources])
  const built = (ending: string) => {
    const found = readdirSync(dist).find((name) => name.startsWith('baton') && name.endsWith(ending))
    if (found === undefined) throw new Error(`no file of the Python client ends with ${ending}`)
    return found
  }
  return { wheel: built('.whl'), sdist: built('.tar.gz') }
}

/** Installs a wheel, and nothing else, into an empty environment. Returns a function that runs a program there. */
export async function installWheel(
  scratch: string,
  wheel: string,
): Promise<(program: string) => Promise<string>> {
  const environment = join(scratch, 'environment')
  await execute(await pythonProgram(...pythonTools), ['-m', 'venv', environment])
  await execute(join(environment, 'bin/pip'), ['install', '--no-index', wheel])
  return async (program) => {
    const file = join(scratch, 'program.py')
    writeFileSync(file, program)
    const { stdout } = await execute(join(environment, 'bin/python'), ['-W', 'error', file], { cwd: scratch })
    return stdout
  }
}

/** The Python examples of a document, as one program. */
export function pythonIn(path: string, url: string): string {
  const examples = fencesOf(readDocument(path)).filter(({ language }) => language === 'python')
  return examples.map(({ text }) => text.replaceAll('http://127.0.0.1:7070', url)).join('\n')
}

/** What the README of the Python client presupposes. */
const assumed = `
def read(table: str, partition: str) -> list[list[int]]:
    return [[0] * 20_000, [0] * 5_000]
`

/** The hand-off of the README of the Python client. It ends when nothing is left to do. */
export const pythonHandOff = (url: string): string =>
  `${assumed}${pythonIn('clients/python/README.md', url).replace('concurrency=8', 'until_idle=True')}`
