import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * `npm run bench:peers`. The peers' libraries are no dependencies of Baton: they live in a folder with a
 * lockfile of its own and are installed when this is run for the first time, or when that lockfile changed.
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
// Only now: the comparison imports what was just installed.
await import(new URL('./compare.ts', import.meta.url).href)
