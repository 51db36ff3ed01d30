import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openApp } from '../../../packages/server/src/app.ts'
import { readPageFiles } from '../../../packages/server/src/http/page/page-files.ts'
import { readSettings } from '../../../packages/server/src/settings.ts'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }

/** Every route of the running service as `GET /tasks/{taskId}`. Left out: HEAD, and the files that the page loads. */
export async function servedRoutes(): Promise<string[]> {
  const data = await mkdtemp(join(tmpdir(), 'baton-docs-'))
  const { config } = readSettings(new Map(), {})
  const app = await openApp({ ...config, data }, { log: quiet })
  const tree = app.http.printRoutes({ commonPrefix: false, includeHooks: false })
  await app.close()
  await rm(data, { recursive: true, force: true })
  const pageFiles = new Set([...readPageFiles().keys()].map((path) => `GET /${path}`))
  return routesOf(tree).filter((route) => !pageFiles.has(route))
}

/** The router draws its routes as a tree: each line has a piece of a path, further in than the piece before it. */
function routesOf(tree: string): string[] {
  const routes: string[] = []
  const pieces: string[] = []
  for (const line of tree.split('\n')) {
    const match = /^([│ ]*)[└├]── (\S+)(?: \(([A-Z, ]+)\))?/.exec(line)
    if (match === null) continue
    const [, indent = '', piece = '', methods = ''] = match
    pieces.splice(indent.length / 4, pieces.length, piece)
    const path = pieces.join('').replaceAll(/:(\w+)/g, '{$1}')
    for (const method of methods.split(', ')) {
      if (method !== '' && method !== 'HEAD') routes.push(`${method} ${path}`)
    }
  }
  return routes
}
