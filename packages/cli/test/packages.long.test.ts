import { execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { publishedPackages, root, versionFaults } from '../../../release/packages.ts'
import { descriptors } from '../../client/test/support/descriptors.ts'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const run = promisify(execFile)
const tsc = join(root, 'node_modules/.bin/tsc')
const scratch = await realpath(await mkdtemp(join(tmpdir(), 'baton-packages-')))
afterAll(() => rm(scratch, { recursive: true, force: true }))
const tarballs = join(scratch, 'tarballs')

async function tarball(folder: string): Promise<string> {
  const names = await readdir(tarballs)
  return join(tarballs, names.find((name) => name.startsWith(`baton-${folder}-`)) ?? '')
}

/** An empty folder with only these packages, installed as a user would. */
async function installed(name: string, packages: readonly string[]): Promise<string> {
  const target = join(scratch, name)
  await mkdir(target)
  await writeFile(join(target, 'package.json'), JSON.stringify({ name, private: true, type: 'module' }))
  await run(
    'npm',
    ['install', '--no-audit', '--no-fund', '--prefer-offline', ...(await Promise.all(packages.map(tarball)))],
    { cwd: target },
  )
  return target
}

async function installedNames(folder: string): Promise<string[]> {
  const { stdout } = await run('npm', ['ls', '--all', '--parseable'], { cwd: folder })
  const modules = join(folder, 'node_modules/')
  return stdout
    .split('\n')
    .flatMap((path) => (path.startsWith(modules) ? [path.slice(modules.length)] : []))
    .toSorted()
}

beforeAll(async () => {
  await run(process.execPath, [join(root, 'release/build.ts'), tarballs], { cwd: root })
})

describe('each package', () => {
  test('has the same version as all others', () => {
    expect(versionFaults()).toEqual([])
  })

  test.each([...publishedPackages])('%s contains what its users need and nothing else', async (folder) => {
    const { stdout } = await run('tar', ['-tzf', await tarball(folder)])
    const files = stdout.trim().split('\n')
    expect(files).toContain('package/LICENSE')
    expect(files).toContain('package/README.md')
    expect(files.filter((file) => /\.test\.|tsbuildinfo|\/test\//.test(file))).toEqual([])
    const scripts = files.filter((file) => /^package\/dist\/(?!page\/).*\.js$/.test(file))
    expect(scripts.length).toBeGreaterThan(0)
    for (const script of scripts) {
      expect(files).toContain(`${script}.map`)
      expect(files).toContain(script.replace(/\.js$/, '.d.ts'))
    }
    const license = await readFile(join(root, 'LICENSE'), 'utf8')
    expect(await readFile(join(root, 'packages', folder, 'LICENSE'), 'utf8')).toBe(license)
  })

  test.each([...publishedPackages])('%s has a bill of materials', async (folder) => {
    const { stdout } = await run('tar', ['-xzOf', await tarball(folder), 'package/dist/sbom.cdx.json'])
    const sbom = JSON.parse(stdout) as Sbom
    const { name, version, dependencies } = JSON.parse(
      await readFile(join(root, 'packages', folder, 'package.json'), 'utf8'),
    ) as { name: string; version: string; dependencies?: Record<string, string> }
    expect(sbom).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.5' })
    expect(sbom.metadata.component.purl).toBe(`pkg:npm/${name.replace('@', '%40')}@${version}`)
    const listed = sbom.components.map(({ purl }) => purl)
    for (const [dependency, pinned] of Object.entries(dependencies ?? {}))
      expect(listed).toContain(`pkg:npm/${dependency.replace('@', '%40')}@${pinned}`)
    // Packages from a registry have the digest of the lock file.
    const foreign = sbom.components.filter(({ group }) => group !== '@baton')
    expect(foreign.filter(({ hashes }) => hashes?.[0]?.alg !== 'SHA-512')).toEqual([])
  })

  test.each([...publishedPackages])('%s passes publint and are-the-types-wrong', async (folder) => {
    const bytes = new Uint8Array(await readFile(await tarball(folder)))
    const { messages } = await publint({ pack: { tarball: bytes.buffer }, level: 'suggestion' })
    expect(messages).toEqual([])
    const checked = await checkPackage(createPackageFromTarballData(bytes))
    const problems = 'problems' in checked ? checked.problems : []
    // ES modules only: resolution as in Node 10, or as CommonJS, is not supported.
    const offered = problems.filter(
      (problem) => !('resolutionKind' in problem && /node10|node16-cjs/.test(problem.resolutionKind)),
    )
    expect(offered).toEqual([])
  })
})

interface Sbom {
  readonly metadata: { readonly component: { readonly purl: string } }
  readonly components: {
    readonly group?: string
    readonly purl: string
    readonly hashes?: { readonly alg: string }[]
  }[]
}

describe('installed into an empty folder', () => {
  test('the client installs nothing of the server', async () => {
    const folder = await installed('client-only', ['protocol', 'client'])
    expect(await installedNames(folder)).toEqual(['@baton/client', '@baton/protocol', 'typebox'])
  })

  test('the command serves with its page, and a TypeScript program does a hand-off', async () => {
    const folder = await installed('whole', publishedPackages)
    const url = await served(folder)
    const page = await fetch(`${url}/`)
    expect(page.headers.get('content-type')).toContain('text/html')
    expect(await page.text()).toContain('assets/')

    await writeFile(join(folder, 'program.ts'), program)
    const compiler = { module: 'nodenext', target: 'es2024', strict: true, exactOptionalPropertyTypes: true }
    const typeRoots = [join(root, 'node_modules/@types')]
    for (const [name, more] of Object.entries({
      node: { types: ['node'], typeRoots },
      browser: { types: [], lib: ['es2024', 'dom'], noEmit: true },
    })) {
      const settings = { compilerOptions: { ...compiler, ...more }, files: ['program.ts'] }
      await writeFile(join(folder, `tsconfig.${name}.json`), JSON.stringify(settings))
      await run(tsc, ['-p', `tsconfig.${name}.json`, '--checkers', '1'], { cwd: folder })
    }
    const { stdout } = await run(process.execPath, ['program.js', url], { cwd: folder })
    expect(JSON.parse(stdout)).toEqual({ accepted: 3, handled: ['orders-0-0', 'orders-0-1', 'orders-0-2'] })

    const baton = (...args: string[]) => run(join(folder, 'node_modules/.bin/baton'), [...args, '--url', url])
    const lines = descriptors('shell', 2).map((each) => JSON.stringify(each))
    await writeFile(join(folder, 'shell.ndjson'), lines.join('\n'))
    await baton('call-back', join(folder, 'shell.ndjson'))
    await run(join(folder, 'node_modules/.bin/baton'), [
      'work',
      '--url',
      url,
      '--until-idle',
      '--wait',
      '0',
      '--',
      'sh',
      '-c',
      'test -n "$BATON_PARTITION_NAME"',
    ])
    const { stdout: task } = await baton('tasks', 'shell', '--json')
    expect(JSON.parse(task)).toMatchObject({ state: 'done', partitions: { done: 2 } })
  })
})

async function served(folder: string): Promise<string> {
  const child = spawn(
    join(folder, 'node_modules/.bin/baton'),
    ['serve', '--port', '0', '--data', join(folder, 'data'), '--log-level', 'warn'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /^Baton listening on (\S+)$/.exec(line)?.[1]
    if (url !== undefined) return url
  }
  throw new Error('the service ended before it listened')
}

/** Browser types are enough for it, except for the source of the URL. */
const program = `
import { type PartitionDescriptor, Producer, Worker } from '@baton/client'

declare const process: { argv: string[] }
const url = process.argv[2] ?? ''
const descriptors: PartitionDescriptor[] = [0, 1, 2].map((index) => ({
  taskId: 'orders',
  computeTableName: 'results.orders',
  partition_name: \`orders-0-\${index}\`,
  record_count: 10,
  priorityLevel: 0,
}))
const { accepted } = await new Producer(url).callBack(descriptors)
const handled: string[] = []
const worker = new Worker(url, async (partition, { signal }) => {
  signal.throwIfAborted()
  handled.push(partition.partition_name)
  return { records: partition.record_count }
}, { waitSeconds: 0, untilIdle: true })
await worker.run()
console.log(JSON.stringify({ accepted, handled: handled.toSorted() }))
`
