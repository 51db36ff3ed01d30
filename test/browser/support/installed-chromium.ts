import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
const APPLICATIONS = ['Chromium', 'Google Chrome'].map(
  (name) => `/Applications/${name}.app/Contents/MacOS/${name}`,
)
const DEBIAN_PACKAGE = 'chromium'

/**
 * A browser of this machine, where the registry has none for it. Debian's is installed where tests may do that; the
 * lock is for the test files that run side by side.
 */
export async function installedChromium(): Promise<string> {
  const found = find()
  if (found !== undefined) return found
  if (process.getuid?.() === 0 && findIn(searchPath(), ['apt-get']) !== undefined) {
    const install = `command -v ${DEBIAN_PACKAGE} || (apt-get update && apt-get install --yes --no-install-recommends ${DEBIAN_PACKAGE})`
    await execute('flock', [join(tmpdir(), 'baton-chromium.lock'), 'sh', '-c', install])
  }
  const installed = find()
  if (installed === undefined)
    throw new Error(
      `for ${process.platform} on ${process.arch} no browser comes with npm: install Chromium or Chrome, or name one in BATON_TEST_BROWSER`,
    )
  return installed
}

function find(): string | undefined {
  const named = process.env['BATON_TEST_BROWSER']
  if (named !== undefined) return named
  return findIn(searchPath(), NAMES) ?? APPLICATIONS.find((path) => existsSync(path))
}

const searchPath = () => (process.env['PATH'] ?? '').split(delimiter)

function findIn(folders: readonly string[], names: readonly string[]): string | undefined {
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path))
}
