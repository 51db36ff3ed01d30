import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, type Rolldown } from 'vite'
import { expect, onTestFinished, test } from 'vitest'
import { sharedChromium } from '../../../test/browser/support/chromium.ts'
import { startService } from './support/service.ts'

/** What a page loads that uses this part of the library. */
async function bundled(exports: string): Promise<Rolldown.OutputChunk[]> {
  const cache = fileURLToPath(new URL('../../../node_modules/.cache/', import.meta.url))
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, 'client-bundle-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const entry = join(folder, 'entry.ts')
  await writeFile(entry, `export { ${exports} } from '@baton/client'`)
  const [result] = (await build({
    configFile: false,
    logLevel: 'silent',
    resolve: { conditions: ['baton-source', 'module', 'browser', 'import', 'default'] },
    build: { write: false, minify: true, lib: { entry, formats: ['es'] } },
  })) as Rolldown.RolldownOutput[]
  return result?.output.filter((file) => file.type === 'chunk') ?? []
}

/** All static imports of the first file. Other files are loaded when a function of the library is called. */
function loadedAtOnce(files: readonly Rolldown.OutputChunk[]): string {
  const names = new Set(files.slice(0, 1).map(({ fileName }) => fileName))
  for (const name of names) {
    for (const used of files.find(({ fileName }) => fileName === name)?.imports ?? []) names.add(used)
  }
  return files.flatMap(({ fileName, code }) => (names.has(fileName) ? [code] : [])).join('\n')
}

test('a page calls back, runs a worker and reads views', async () => {
  const { url } = await startService()
  const files = await bundled('BatonClient, Producer, Worker')
  const page = await (await sharedChromium()).newPage()
  onTestFinished(() => page.close())
  await page.route('**/blank', (route) =>
    route.fulfill({ contentType: 'text/html', body: '<!doctype html>' }),
  )
  for (const { fileName, code } of files) {
    await page.route(`**/${fileName}`, (route) =>
      route.fulfill({ contentType: 'text/javascript', body: code }),
    )
  }
  await page.goto(`${url}/blank`)
  const seen = await page.evaluate(`(async () => {
    const { BatonClient, Producer, Worker } = await import('/${files[0]?.fileName}')
    const url = location.origin
    const { accepted } = await new Producer(url).callBack([0, 1, 2].map((index) => ({
      taskId: 'page', computeTableName: 'results.page', partition_name: 'page-0-' + index,
      record_count: 1, priorityLevel: 0,
    })))
    const handled = []
    const settings = { waitSeconds: 0, untilIdle: true }
    await new Worker({ url, instanceId: 'Seite' }, (partition) => { handled.push(partition.partition_name) }, settings).run()
    const manifest = []
    for await (const line of new BatonClient(url).manifest('page')) manifest.push(line.state)
    return { accepted, handled, manifest }
  })()`)
  expect(seen).toEqual({
    accepted: 3,
    handled: ['page-0-0', 'page-0-1', 'page-0-2'],
    manifest: ['done', 'done', 'done'],
  })
})

test.each([
  ['looks', 'BatonClient', 10_000],
  ['looks and works', 'BatonClient, Worker', 15_000],
])('a page that only %s loads no schemas', async (_, exports, most) => {
  const files = await bundled(exports)
  expect(files).toHaveLength(1)
  expect(loadedAtOnce(files)).not.toContain('additionalProperties')
  expect(gzipSync(loadedAtOnce(files)).byteLength).toBeLessThan(most)
})

test('a page that calls back loads schemas when it does', async () => {
  const files = await bundled('BatonClient, Producer, Worker')
  expect(loadedAtOnce(files)).not.toContain('additionalProperties')
  expect(gzipSync(loadedAtOnce(files)).byteLength).toBeLessThan(20_000)
})
