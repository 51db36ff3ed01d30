import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, type Rolldown } from 'vite'
import type { TestProject } from 'vitest/node'
import { PROGRAMS } from '../../../test/support/programs.ts'

const packages = fileURLToPath(new URL('../../', import.meta.url))

const entries = {
  service: join(packages, 'server/src/main.ts'),
  command: join(packages, 'cli/src/main.ts'),
}

/**
 * Tests start the service and the command hundreds of times, and most of the cost of a start is finding and
 * loading source files. So before all tests they are bundled into a few files, from the same sources and
 * dependencies. Node writes its compile cache when a process ends by itself; tests kill most of their
 * services, so the cache is also written here.
 */
export default async function compileOnce(project: TestProject): Promise<void> {
  await prepare(project)
  project.onTestsRerun(() => prepare(project))
}

async function prepare({ config }: TestProject): Promise<void> {
  const files = await bundle()
  const folder = fileURLToPath(PROGRAMS)
  mkdirSync(folder, { recursive: true })
  // Another run in this checkout may be using them. They are replaced, never written to: a copy of the checkout may
  // consist of links to the same files.
  for (const [name, code] of files) {
    const file = join(folder, name)
    if (existsSync(file) && readFileSync(file, 'utf8') === code) continue
    writeFileSync(`${file}.${process.pid}`, code)
    renameSync(`${file}.${process.pid}`, file)
  }
  for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name), { force: true })
  const loadedOnDemand = [...files.keys()].filter(
    (name) => name.endsWith('.js') && !(name.replace('.js', '') in entries),
  )
  const imports = loadedOnDemand.map((name) => `--import=${pathToFileURL(join(folder, name))}`)
  for (const entry of Object.keys(entries))
    execFileSync(process.execPath, [...imports, join(folder, `${entry}.js`), '--help'], {
      env: { ...process.env, ...config.env },
    })
}

async function bundle(): Promise<Map<string, string>> {
  const built = await build({
    configFile: false,
    logLevel: 'warn',
    ssr: { noExternal: true, resolve: { conditions: ['baton-source', 'module', 'node'] } },
    build: {
      ssr: true,
      write: false,
      target: 'node24',
      rolldownOptions: {
        input: entries,
        output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' },
      },
    },
    plugins: [
      {
        // Files next to a source are resolved relative to the source.
        name: 'own-url',
        enforce: 'pre',
        transform: (code, id) =>
          id.startsWith(packages) && code.includes('import.meta.url')
            ? code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href))
            : undefined,
      },
    ],
  })
  const { output } = built as Rolldown.RolldownOutput
  const chunks = output.flatMap((one) => (one.type === 'chunk' ? [[one.fileName, one.code] as const] : []))
  // Without a declared type, Node parses each file once more to find out that it is a module.
  return new Map([...chunks, ['package.json', '{ "type": "module" }']])
}
