// Builds and checks everything that a release publishes, into dist/: npm run release. It publishes nothing.
// docs/releasing.md describes the flags and the steps before and after it.
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { CleanUp, temporaryFolder } from '../bench/harness/clean-up.ts'
import { differencesInFirstHandOff } from '../test/readme/support/first-hand-off.ts'
import { publishedPackages, root } from './packages.ts'
import { buildPython, installWheel, pythonHandOff } from './python.ts'
import { readLockFile, sbomOf } from './sbom.ts'
import { check, doneInFirstHandOff, run, runCheck, say } from './tools.ts'
import { allVersionFaults, changelogFault, currentVersion, setVersion } from './versions.ts'

const { values: given } = parseArgs({
  options: {
    set: { type: 'string' },
    tag: { type: 'string' },
    base: { type: 'string' },
    'without-image': { type: 'boolean', default: false },
  },
})
const cleanUp = new CleanUp()
const dist = join(root, 'dist')

/** Also the directory of the service: everything that it writes is in it. */
function emptyFolder(purpose: string): string {
  return temporaryFolder(purpose, cleanUp)
}

async function started(command: string, cwd: string, env: NodeJS.ProcessEnv) {
  const begun = performance.now()
  const child = spawn(command, ['serve', '--port', '0', '--log-level', 'warn'], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  cleanUp.add(() => void child.kill('SIGKILL'))
  for await (const line of createInterface({ input: child.stdout }))
    return { child, url: line.split(' ').at(-1) ?? '', millis: Math.round(performance.now() - begun) }
  throw new Error(`${command} did not start`)
}

/** Starts a service, runs the first hand-off of README.md against it, kills it, and stops it with SIGTERM. */
async function handOff(what: string, command: string, cwd: string, env: NodeJS.ProcessEnv): Promise<void> {
  const first = await started(command, cwd, env)
  const differences = await differencesInFirstHandOff(first.url)
  check(
    `${what}: started in ${first.millis} ms, first hand-off as in README.md`,
    differences.length === 0,
    differences,
  )
  check(`${what}: serves the page`, (await (await fetch(first.url)).text()).includes('assets/'))
  await ended(first.child, 'SIGKILL')
  const second = await started(command, cwd, env)
  check(
    `${what}: killed and started again in ${second.millis} ms, its data is there`,
    (await doneInFirstHandOff(second.url)) === 1,
  )
  const stopping = performance.now()
  const [code] = await ended(second.child, 'SIGTERM')
  check(
    `${what}: SIGTERM ends it with code 0 after ${Math.round(performance.now() - stopping)} ms`,
    code === 0,
  )
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<unknown[]> {
  const exit = once(child, 'exit')
  child.kill(signal)
  return exit
}

const megabytes = (file: string) => `${(statSync(join(dist, file)).size / 1e6).toFixed(1)} MB`

async function packages(): Promise<void> {
  run('npm', 'run', 'build')
  const tarballs = readdirSync(dist).filter((name) => name.endsWith('.tgz'))
  check(`${tarballs.length} packages`, tarballs.length === publishedPackages.length, tarballs)
  for (const tarball of tarballs) {
    const printed = run('sh', '-c', 'exec npm publish --dry-run "$0" 2>&1', join(dist, tarball))
    // A dry run needs no login. The others would be the registry's opinion of the package, and of this machine's npm.
    const warnings = printed
      .split('\n')
      .filter((line) => /^npm (?:warn|error)/i.test(line) && !/logged in|Unknown \w+ config/.test(line))
    check(
      `${tarball}: npm publish --dry-run is clean, ${megabytes(tarball)}`,
      warnings.length === 0,
      warnings,
    )
  }
  const folder = emptyFolder('release-npm')
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  const files = tarballs.map((name) => join(dist, name))
  run('npm', 'install', '--prefix', folder, '--no-audit', '--no-fund', ...files)
  await handOff('npm packages', join(folder, 'node_modules/.bin/baton'), folder, process.env)
}

/** Returns the path of the one file. */
async function oneFile(version: string): Promise<string> {
  run('npm', 'run', 'build:binary')
  const file = `baton-${version}-${process.platform}-${process.arch}`
  renameSync(join(dist, 'baton'), join(dist, file))
  say(`${file}: ${megabytes(file)}`)
  // Without any variable: neither Node nor this checkout can be found.
  await handOff('one file', join(dist, file), emptyFolder('release-file'), {})
  return join(dist, file)
}

async function pythonClient(service: string): Promise<void> {
  const folder = emptyFolder('release-python')
  const { wheel, sdist } = await buildPython(folder, dist)
  const runPython = await installWheel(folder, join(dist, wheel))
  const { child, url } = await started(service, folder, {})
  await runPython(pythonHandOff(url))
  const { state } = (await (await fetch(`${url}/tasks/orders-2026-03`)).json()) as { state: string }
  check(`${wheel}, ${sdist}: installed into an empty environment, hands off`, state === 'done', state)
  await ended(child, 'SIGTERM')
}

function image(version: string): void {
  const base = given.base === undefined ? [] : ['--base', given.base]
  const archive = `baton-${version}-image.tar`
  const printed = run('npm', 'run', 'check:image', '--', ...base, '--archive', join(dist, archive))
  for (const line of printed.split('\n').filter((one) => / s {2}/.test(one))) say(`image: ${line.trim()}`)
  say(`${archive}: ${megabytes(archive)}`)
}

/** Of the one file and of the image: the packages, and Node itself. */
function billOfMaterials(version: string): void {
  const bill = sbomOf(readLockFile(), 'packages/cli') as { components: object[] }
  const node = {
    type: 'application',
    name: 'node',
    version: process.versions.node,
    purl: `pkg:generic/node@${process.versions.node}`,
  }
  const whole = { ...bill, components: [...bill.components, node] }
  writeFileSync(join(dist, `baton-${version}.cdx.json`), `${JSON.stringify(whole, null, 2)}\n`)
}

function checksums(): void {
  const files = readdirSync(dist)
    .filter((name) => name !== 'SHA256SUMS')
    .toSorted()
  const digest = (name: string) =>
    createHash('sha256')
      .update(readFileSync(join(dist, name)))
      .digest('hex')
  writeFileSync(join(dist, 'SHA256SUMS'), files.map((name) => `${digest(name)}  ${name}\n`).join(''))
  run('sh', '-c', 'cd dist && sha256sum --check --quiet SHA256SUMS')
  say(`SHA256SUMS: ${files.length} files`)
}

await runCheck(cleanUp, async () => {
  if (given.set !== undefined) {
    setVersion(given.set, new Date().toISOString().slice(0, 10))
    say(`the version is ${given.set}; review the changes, commit them, and tag the commit v${given.set}`)
    return
  }
  const version = currentVersion()
  const faults = allVersionFaults()
  check(`every file has version ${version}`, faults.length === 0, faults)
  const unready = changelogFault(version)
  if (given.tag !== undefined) {
    check(`the tag is v${version}`, given.tag === `v${version}`, given.tag)
    check('the change log describes it', unready === undefined, unready)
  } else if (unready !== undefined) say(`${unready}: this is a rehearsal`)
  rmSync(dist, { recursive: true, force: true })
  mkdirSync(dist)
  await packages()
  await pythonClient(await oneFile(version))
  if (given['without-image']) say('the image is left out')
  else image(version)
  billOfMaterials(version)
  checksums()
})
