import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const unpack = fileURLToPath(new URL('unpack-chromium.ts', import.meta.url))

/** The package has a browser for this platform only. */
export const isPackedForThisMachine = process.platform === 'linux' && process.arch === 'x64'

/**
 * Each version has its own folder. Unpacking takes seconds of processor time: the lock is for test files that
 * run in parallel, of which only the first unpacks.
 */
export async function unpackedChromium(): Promise<string> {
  const folder = join(tmpdir(), `baton-chromium-${packedVersion()}`)
  if (!existsSync(folder)) await execute('flock', [`${folder}.lock`, process.execPath, unpack, folder])
  return join(folder, 'chromium')
}

function packedVersion(): string {
  const entry = createRequire(import.meta.url).resolve('@sparticuz/chromium')
  const { version } = JSON.parse(readFileSync(join(dirname(entry), '..', 'package.json'), 'utf8'))
  return version
}
