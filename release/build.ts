import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { publishedPackages, root, versionFaults } from './packages.ts'
import { readLockFile, sbomOf } from './sbom.ts'

/**
 * Builds the tarballs for `npm publish`: `node release/build.ts [FOLDER]`, by default into dist/. All code is
 * compiled again, so that no output of a deleted source file is published. The page is the last output of
 * `npm run build`, or built here if there is none.
 */
const target = resolve(process.argv[2] ?? `${root}dist`)
const run = (command: string, ...args: string[]) =>
  execFileSync(command, args, { cwd: root, stdio: 'inherit' })

const faults = versionFaults()
if (faults.length > 0) throw new Error(faults.join('\n'))

for (const folder of publishedPackages)
  rmSync(`${root}packages/${folder}/dist`, { recursive: true, force: true })
// `npm run build` checks the types before, of all packages at once.
run('node_modules/.bin/tsc', '-b', 'tsconfig.build.json', '--noCheck', '--builders', '1')

const page = `${root}packages/dashboard/dist`
if (!existsSync(`${page}/index.html`)) run('npm', 'run', 'build:page')
cpSync(page, `${root}packages/server/dist/page`, { recursive: true })

const lock = readLockFile()
for (const folder of publishedPackages) {
  const sbom = JSON.stringify(sbomOf(lock, `packages/${folder}`), null, 2)
  writeFileSync(`${root}packages/${folder}/dist/sbom.cdx.json`, `${sbom}\n`)
}

mkdirSync(target, { recursive: true })
for (const name of readdirSync(target)) if (name.endsWith('.tgz')) rmSync(`${target}/${name}`)
run(
  'npm',
  'pack',
  '--silent',
  `--pack-destination=${target}`,
  ...publishedPackages.map((folder) => `--workspace=packages/${folder}`),
)
