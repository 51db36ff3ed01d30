import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { BatonClient } from '@baton/client'
import { expect, onTestFinished, test } from 'vitest'
import { descriptor } from '../../packages/client/test/support/descriptors.ts'
import { openTracing } from '../../packages/server/src/tracing.ts'
import { testFolder } from '../support/test-folder.ts'
import { until } from '../support/until.ts'

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const traceparent = `00-${TRACE}-00f067aa0ba902b7-01`

interface PrintedSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parent: string | null
}

async function startWith(...imports: string[]): Promise<{ url: string; spans: PrintedSpan[] }> {
  const flags = ['--conditions=baton-source', ...imports.flatMap((path) => ['--import', pathOf(path)])]
  const main = pathOf('../../packages/server/src/main.ts')
  const service = ['--port', '0', '--data', await testFolder(), '--log-level', 'warn']
  const child = spawn(process.execPath, [...flags, main, ...service], { stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(async () => {
    child.kill('SIGTERM')
    if (child.exitCode === null) await once(child, 'exit')
  })
  const spans: PrintedSpan[] = []
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (line.startsWith('span ')) spans.push(JSON.parse(line.slice(5)) as PrintedSpan)
  })
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { url: line.split(' ').at(-1) ?? '', spans }
}

test('an SDK that node imports before the service receives its spans', async () => {
  const { url, spans } = await startWith('./support/spans-to-stderr.ts')
  const client = new BatonClient(url)
  await client.callBack([descriptor('orders', 0, 0)], { traceparent })
  const { partitions } = await client.pull()
  await until(() => spans.some(({ name }) => name === 'GET /pull'))
  const callBack = spans.find(({ name }) => name === 'POST /call-back')
  expect(callBack).toMatchObject({ traceId: TRACE, parent: '00f067aa0ba902b7' })
  // The propagated context is the service's span for the call-back.
  expect(partitions[0]?.traceparent).toBe(`00-${TRACE}-${callBack?.spanId}-01`)
  const below = spans.filter(({ parent }) => parent === callBack?.spanId).map(({ name }) => name)
  expect(below.toSorted()).toEqual(['answer', 'batch', 'pull', 'receive'])
})

test('without an SDK nothing is traced, and a trace context is passed on unchanged', async () => {
  expect(await openTracing()).toBeUndefined()
  const { url, spans } = await startWith()
  const client = new BatonClient(url)
  await client.callBack([descriptor('orders', 0, 0)], { traceparent })
  expect((await client.pull()).partitions[0]?.traceparent).toBe(traceparent)
  expect(spans).toEqual([])
})
