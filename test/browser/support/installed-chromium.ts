import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

/** The headless shell needs much less processor time per visit than a whole browser. */
const SHELL = 'chromium-headless-shell'
const NAMES = [SHELL, 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
const APPLICATIONS = ['Chromium', 'Google Chrome'].map(
  (name) => `/Applications/${name}.app/Contents/MacOS/${name}`,
)

/**
 * A browser of this machine, where the registry has no package for its platform. Debian's is installed if the
 * tests have the permission. The lock is for test files that run in parallel.
 */
export async function installedChromium(): Promise<string> {
  const named = process.env['BATON_TEST_BROWSER']
  if (named !== undefined) return named
  let refusal: unknown
  if (findIn(searchPath(), [SHELL]) === undefined && mayInstall())
    await install().catch((error: unknown) => {
      refusal = error
    })
  const found = findIn(searchPath(), NAMES) ?? APPLICATIONS.find((path) => existsSync(path))
  if (found === undefined)
    throw new Error(
      `for ${process.platform} on ${process.arch} no browser comes with npm: install Chromium or Chrome, or name one in BATON_TEST_BROWSER`,
      { cause: refusal },
    )
  return found
}

const mayInstall = () => process.getuid?.() === 0 && findIn(searchPath(), ['apt-get']) !== undefined

async function install(): Promise<void> {
  const script = `command -v ${SHELL} || (apt-get update && apt-get install --yes --no-install-recommends ${SHELL})`
  await execute('flock', [join(tmpdir(), 'baton-chromium.lock'), 'sh', '-c', script])
}

const searchPath = () => (process.env['PATH'] ?? '').split(delimiter)

function findIn(folders: readonly string[], names: readonly string[]): string | undefined {
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path))
}
