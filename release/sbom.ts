import { readFileSync } from 'node:fs'
import { root } from './packages.ts'

// Lists what is installed with a package, or bundled into it, as a CycloneDX document made from the lock
// file. `npm sbom` omits packages that are also development dependencies: pg and ajv, for instance.

interface Locked {
  readonly name?: string
  readonly version?: string
  readonly integrity?: string
  readonly license?: string
  readonly link?: boolean
  readonly resolved?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

export type LockFile = Readonly<Record<string, Locked>>

export function readLockFile(): LockFile {
  const { packages } = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8')) as { packages: LockFile }
  return packages
}

/**
 * Workspaces that are bundled into a package beside its dependencies: the server serves the page, a bundle of
 * all its packages.
 */
const builtIn: Readonly<Record<string, readonly string[]>> = { 'packages/server': ['packages/dashboard'] }

/** Resolves as Node does: beside the requiring package, then in the folders above. */
function placeOf(lock: LockFile, from: string, name: string): string | undefined {
  for (let folder = from; ; folder = folder.slice(0, Math.max(folder.lastIndexOf('/'), 0))) {
    const place = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`
    const locked = lock[place]
    if (locked !== undefined) return locked.link === true ? locked.resolved : place
    if (folder === '') return undefined
  }
}

const bundles = new Set(Object.values(builtIn).flat())

/** Peer dependencies that are not optional are installed, too. */
function wantedBy(place: string, locked: Locked): string[] {
  const peers = Object.keys(locked.peerDependencies ?? {})
  const needed = peers.filter((name) => locked.peerDependenciesMeta?.[name]?.optional !== true)
  return [
    ...Object.keys(locked.dependencies ?? {}),
    ...(bundles.has(place) ? Object.keys(locked.devDependencies ?? {}) : []),
    ...Object.keys(locked.optionalDependencies ?? {}),
    ...needed,
  ]
}

function nameOf(place: string, { name }: Locked): string {
  return name ?? place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length)
}

const purlOf = (name: string, version: string) => `pkg:npm/${name.replace('@', '%40')}@${version}`

/** Everything reachable from a folder of the lock file, and the dependencies between these. */
function reachable(lock: LockFile, folder: string): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>()
  const toSee = [folder]
  for (let place = toSee.pop(); place !== undefined; place = toSee.pop()) {
    if (found.has(place)) continue
    const from = place
    const places = wantedBy(from, lock[from] ?? {}).flatMap((name) => placeOf(lock, from, name) ?? [])
    const all = [...places, ...(builtIn[from] ?? [])]
    found.set(from, all)
    toSee.push(...all)
  }
  return found
}

/** Contains neither time nor serial number: the same sources give the same document. */
export function sbomOf(lock: LockFile, folder: string): object {
  const found = reachable(lock, folder)
  const refOf = (place: string) => {
    const locked = lock[place] ?? {}
    return purlOf(nameOf(place, locked), locked.version ?? '0')
  }
  const component = (place: string) => {
    const locked = lock[place] ?? {}
    const [scope, bare] = nameOf(place, locked).startsWith('@') ? nameOf(place, locked).split('/') : []
    return {
      type: 'library',
      'bom-ref': refOf(place),
      ...(scope === undefined ? {} : { group: scope }),
      name: bare ?? nameOf(place, locked),
      version: locked.version ?? '0',
      ...(locked.license === undefined ? {} : { licenses: [{ license: { id: locked.license } }] }),
      purl: refOf(place),
      ...(locked.integrity === undefined ? {} : { hashes: hashesOf(locked.integrity) }),
    }
  }
  // The same version may be in several folders.
  const byRef = Map.groupBy(found.keys(), refOf)
  const own = refOf(folder)
  const inOrder = [...byRef.keys()].filter((ref) => ref !== own).toSorted()
  const leadsTo = (ref: string) =>
    (byRef.get(ref) ?? []).flatMap((place) => found.get(place) ?? []).map(refOf)
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: component(folder) },
    components: inOrder.map((ref) => component(byRef.get(ref)?.[0] ?? '')),
    dependencies: [own, ...inOrder].map((ref) => ({
      ref,
      dependsOn: [...new Set(leadsTo(ref))].toSorted(),
    })),
  }
}

function hashesOf(integrity: string) {
  return integrity.split(' ').map((one) => {
    const [algorithm = '', digest = ''] = one.split('-')
    return {
      alg: algorithm.toUpperCase().replace('SHA', 'SHA-'),
      content: Buffer.from(digest, 'base64').toString('hex'),
    }
  })
}
