import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { root } from './markdown.ts'

interface Manifest {
  readonly name: string
  readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>
}

/** The source file behind each import name of our packages. */
const ownSources = new Map(
  globSync('packages/*/package.json', { cwd: root }).flatMap((manifest) => {
    const { name, exports = {} } = JSON.parse(readFileSync(root + manifest, 'utf8')) as Manifest
    return Object.entries(exports).flatMap(([subpath, target]) => {
      const source = typeof target === 'string' ? undefined : target['baton-source']
      return source === undefined ? [] : [[join(name, subpath), join(dirname(manifest), source)] as const]
    })
  }),
)

/** For our own sources, a path in the repository. */
function pathOf(name: string, importer: string): string {
  return name.startsWith('.') ? join(dirname(importer), name) : (ownSources.get(name) ?? name)
}

/**
 * What a source imports, including types and dynamic imports: a path in the repository, a package name, or
 * `node:…`.
 */
export function importsOf(path: string): string[] {
  const statements = readFileSync(root + path, 'utf8').matchAll(
    /^(?:import|export)\b[^'"]*?\bfrom '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gms,
  )
  return [...statements].map((match) => pathOf(match[1] ?? match[2] ?? match[3] ?? '', path))
}

/** What a source loads when it is loaded: without types, which Node erases, and without dynamic imports. */
export function loadedWith(path: string): string[] {
  const statements = stripTypeScriptTypes(readFileSync(root + path, 'utf8')).matchAll(
    /^(?:import|export)\b[^'"]*?\bfrom '([^']+)'|^import '([^']+)'/gms,
  )
  return [...statements].map((match) => pathOf(match[1] ?? match[2] ?? '', path))
}

/**
 * The shortest import chain from a source to a package or one of its subpaths; undefined if there is none.
 */
export function wayTo(sought: string, from: string): string | undefined {
  const ways = new Map([[from, from]])
  // A Set also visits elements that are added during the iteration.
  for (const [path, way] of ways) {
    for (const used of loadedWith(path)) {
      if (used === sought || used.startsWith(`${sought}/`)) return `${way} -> ${used}`
      if (used.startsWith('packages/') && !ways.has(used)) ways.set(used, `${way} -> ${used}`)
    }
  }
  return undefined
}
