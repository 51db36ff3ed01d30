import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { root } from './markdown.ts'

interface Manifest {
  readonly name: string
  readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>
}

/** The source behind each name under which our packages can be imported. */
const ownSources = new Map(
  globSync('packages/*/package.json', { cwd: root }).flatMap((manifest) => {
    const { name, exports = {} } = JSON.parse(readFileSync(root + manifest, 'utf8')) as Manifest
    return Object.entries(exports).flatMap(([subpath, target]) => {
      const source = typeof target === 'string' ? undefined : target['baton-source']
      return source === undefined ? [] : [[join(name, subpath), join(dirname(manifest), source)] as const]
    })
  }),
)

/** As a path in the repository where it is ours. */
function pathOf(name: string, importer: string): string {
  return name.startsWith('.') ? join(dirname(importer), name) : (ownSources.get(name) ?? name)
}

/** What a source imports, be it a type or on demand: as a path in the repository, a name of a package, or `node:…`. */
export function importsOf(path: string): string[] {
  const statements = readFileSync(root + path, 'utf8').matchAll(
    /^(?:import|export)\b[^'"]*?\bfrom '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gms,
  )
  return [...statements].map((match) => pathOf(match[1] ?? match[2] ?? match[3] ?? '', path))
}

/** What a source loads as soon as it is loaded itself: without its types, as Node leaves them out, and on demand nothing. */
export function loadedWith(path: string): string[] {
  const statements = stripTypeScriptTypes(readFileSync(root + path, 'utf8')).matchAll(
    /^(?:import|export)\b[^'"]*?\bfrom '([^']+)'|^import '([^']+)'/gms,
  )
  return [...statements].map((match) => pathOf(match[1] ?? match[2] ?? '', path))
}

/** The shortest way on which a source loads a package, or one of its subpaths; undefined where it does not. */
export function wayTo(sought: string, from: string): string | undefined {
  const ways = new Map([[from, from]])
  // Those that are added meanwhile are visited, too.
  for (const [path, way] of ways) {
    for (const used of loadedWith(path)) {
      if (used === sought || used.startsWith(`${sought}/`)) return `${way} -> ${used}`
      if (used.startsWith('packages/') && !ways.has(used)) ways.set(used, `${way} -> ${used}`)
    }
  }
  return undefined
}
