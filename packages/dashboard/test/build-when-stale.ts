import { existsSync, readdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const folder = fileURLToPath(new URL('..', import.meta.url))
const sources = ['src', 'public', 'index.html', 'docs.html', 'vite.config.ts', 'compressed-assets.ts']
/** Further inputs of the page. */
const others = ['../client/src', '../protocol/src']

/** Tests use the built page, which must match its sources. Runs once before all tests. */
export default async function buildWhenStale(): Promise<void> {
  const built = `${folder}dist/index.html`
  const newest = Math.max(...[...sources, ...others].map((path) => newestBelow(folder + path)))
  if (existsSync(built) && statSync(built).mtimeMs >= newest) return
  await build({ configFile: `${folder}vite.config.ts`, logLevel: 'warn' })
}

function newestBelow(path: string): number {
  if (!statSync(path).isDirectory()) return statSync(path).mtimeMs
  const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return Math.max(0, ...files.map((file) => statSync(`${file.parentPath}/${file.name}`).mtimeMs))
}
