import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))

/** The published packages, each after its dependencies. */
export const publishedPackages = ['protocol', 'client', 'server', 'cli'] as const

export interface Manifest {
  readonly name: string
  readonly version: string
  readonly dependencies?: Readonly<Record<string, string>>
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(`${root}packages/${folder}/package.json`, 'utf8'))
}

/**
 * Returns what is wrong with the versions: all packages, and their dependencies on each other, must have the
 * same one.
 */
export function versionFaults(): string[] {
  const manifests = publishedPackages.map(manifestOf)
  const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as Manifest
  const own = new Set(manifests.map(({ name }) => name))
  return manifests.flatMap((manifest) => [
    ...(manifest.version === version ? [] : [`${manifest.name} is ${manifest.version}, not ${version}`]),
    ...Object.entries(manifest.dependencies ?? {})
      .filter(([name, asked]) => own.has(name) && asked !== version)
      .map(([name, asked]) => `${manifest.name} asks for ${name} ${asked}, not ${version}`),
  ])
}
