import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'

const source = (path: string) => new URL(`../src/${path}`, import.meta.url)

/** What the service loads only when it starts in earnest, or on one of the stores. */
const onDemand = [
  'app.ts',
  'disk/sqlite/sqlite-disk.ts',
  'disk/postgres/postgres-disk.ts',
  'cluster/open-cluster.ts',
]

/**
 * Node keeps what it has compiled when a process ends by itself. Tests kill most of their services, so in a fresh checkout
 * a hundred of them would start with a cache that nobody has filled, at twice the cost. Before all tests, once.
 */
export default function compileOnce({ config }: TestProject): void {
  const imports = onDemand.map((path) => `--import=${source(path)}`)
  const main = fileURLToPath(source('main.ts'))
  execFileSync(process.execPath, ['--conditions=baton-source', ...imports, main, '--help'], {
    env: { ...process.env, ...config.env },
  })
}
