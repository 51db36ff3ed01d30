import { openApp } from '../../../packages/server/src/app.ts'
import { readPageFiles } from '../../../packages/server/src/http/routes/page-routes.ts'
import { readSettings } from '../../../packages/server/src/settings.ts'
import { quiet } from '../../support/quiet-log.ts'
import { testFolder } from '../../support/test-folder.ts'

interface ApiDocument {
  readonly paths: Record<string, Record<string, { responses: Record<string, Answered> }>>
}

interface Answered {
  readonly content?: Record<string, { examples?: Record<string, unknown> }>
}

interface Served {
  /** Every route as `GET /tasks/{taskId}`, without HEAD and the page's assets. */
  readonly routes: readonly string[]
  /** The codes of the problems that the API document lists, by route. */
  readonly problems: ReadonlyMap<string, readonly string[]>
}

/** Reads the routes of a running service. */
export async function servedRoutes(): Promise<Served> {
  const { config } = readSettings(new Map(), {})
  const app = await openApp({ ...config, data: await testFolder() }, { log: quiet })
  const tree = app.http.printRoutes({ commonPrefix: false, includeHooks: false })
  const { body } = await app.http.inject({ url: '/openapi.json', headers: { host: 'localhost' } })
  await app.close()
  const pageFiles = new Set([...readPageFiles().keys()].map((path) => `GET /${path}`))
  return {
    routes: routesOf(tree).filter((route) => !pageFiles.has(route)),
    problems: problemsOf(JSON.parse(body) as ApiDocument),
  }
}

function problemsOf({ paths }: ApiDocument): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>()
  for (const [path, operations] of Object.entries(paths))
    for (const [method, { responses }] of Object.entries(operations)) {
      const examples = responses['default']?.content?.['application/problem+json']?.examples ?? {}
      found.set(`${method.toUpperCase()} ${path}`, Object.keys(examples))
    }
  return found
}

/** The router prints its routes as a tree: each line has a segment of a path, indented below its parent. */
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
