import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * `npm run bench:peers`. The peers' libraries are not dependencies of Baton: they are in a folder with its
 * own lockfile and are installed at the first run, or when that lockfile has changed.
 */
const folder = fileURLToPath(new URL('.', import.meta.url))

function upToDate(): boolean {
  const installed = `${folder}node_modules/.package-lock.json`
  return (
    existsSync(installed) && statSync(installed).mtimeMs >= statSync(`${folder}package-lock.json`).mtimeMs
  )
}

if (!upToDate()) {
  process.stderr.write("installing the peers' libraries into bench/peers/node_modules\n")
  const { status, error } = spawnSync('npm', ['ci', '--prefix', folder], { stdio: 'inherit' })
  if (error) throw error
  if (status !== 0) process.exit(status ?? 1)
}
// Imported only now, because the comparison imports what was just installed.
await import(new URL('./compare.ts', import.meta.url).href)
