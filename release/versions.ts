import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { type Manifest, root, versionFaults } from './packages.ts'
import { run } from './tools.ts'

// A version is the same in all packages and in every file that names it.

/** Files that name the version besides the manifests of the packages; the first group is what precedes it. */
const named: readonly (readonly [file: string, place: RegExp])[] = [
  ['Dockerfile', /^(ARG VERSION=)(\S+)$/m],
  ['deploy/kubernetes/embedded.yaml', /(image: \S+\/baton:)(\S+)$/m],
  ['deploy/kubernetes/postgres.yaml', /(image: \S+\/baton:)(\S+)$/m],
  ['clients/python/pyproject.toml', /^(version = ")([^"]+)/m],
]

const read = (file: string) => readFileSync(root + file, 'utf8')

export const currentVersion = (): string => (JSON.parse(read('package.json')) as Manifest).version

/** Returns every place that has another version than the root. */
export function allVersionFaults(): string[] {
  const version = currentVersion()
  const others = named.map(([file, place]) => [file, place.exec(read(file))?.[2]] as const)
  return [
    ...versionFaults(),
    ...others
      .filter(([, found]) => found !== version)
      .map(([file, found]) => `${file} has ${found}, not ${version}`),
  ]
}

/** Returns why the change log is not ready for this version; undefined when it is. */
export function changelogFault(version: string, changelog = read('CHANGELOG.md')): string | undefined {
  const headings = [...changelog.matchAll(/^## \[(\S+)\] - \d{4}-\d\d-\d\d$/gm)].map(([, named]) => named)
  return headings.includes(version) ? undefined : `CHANGELOG.md has no heading ## [${version}] with a date`
}

/** Writes a new version to every place, and gives the unreleased part of the change log its name and date. */
export function setVersion(version: string, date: string): void {
  if (!/^\d+\.\d+\.\d+(-[0-9a-z.]+)?$/.test(version))
    throw new Error(`${version} is not a version such as 1.2.3`)
  const replace = (file: string, change: (text: string) => string) =>
    writeFileSync(root + file, change(read(file)))
  const own = /^(\s*"(?:version|@baton\/[a-z]+)": ")([^"]+)/gm
  for (const file of ['package.json', ...globSync('packages/*/package.json', { cwd: root })])
    replace(file, (text) => text.replaceAll(own, `$1${version}`))
  for (const [file, place] of named) replace(file, (text) => text.replace(place, `$1${version}`))
  if (changelogFault(version) !== undefined)
    replace('CHANGELOG.md', (text) =>
      text.replace('## [Unreleased]\n', `## [Unreleased]\n\n## [${version}] - ${date}\n`),
    )
  run('npm', 'install', '--package-lock-only', '--ignore-scripts')
}
