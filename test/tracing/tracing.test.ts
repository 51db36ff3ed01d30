import { BatonClient, Producer, Worker } from '@baton/client'
import { context, propagation, ROOT_CONTEXT, trace } from '@opentelemetry/api'
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { descriptor } from '../../packages/client/test/support/descriptors.ts'
import { startService } from '../../packages/client/test/support/service.ts'
import { until } from '../support/until.ts'

let exporter: InMemorySpanExporter

beforeEach(() => {
  exporter = new InMemorySpanExporter()
  new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register()
  // Other tests in this process run without an SDK.
  onTestFinished(() => {
    trace.disable()
    context.disable()
    propagation.disable()
  })
})

const tracer = () => trace.getTracer('test')

async function inSpan<T>(name: string, run: (traceparent: string) => Promise<T>): Promise<T> {
  return tracer().startActiveSpan(name, async (span) => {
    const carrier: { traceparent?: string } = {}
    propagation.inject(context.active(), carrier)
    try {
      return await run(carrier.traceparent ?? '')
    } finally {
      span.end()
    }
  })
}

/** A handler's span is a child of the context that its partition was called back with. */
const around = <T>(partition: object, handle: () => Promise<T>): Promise<T> =>
  context.with(propagation.extract(ROOT_CONTEXT, partition), () => inSpan('handle', handle))

const spansOf = (traceId: string) =>
  exporter.getFinishedSpans().filter((span) => span.spanContext().traceId === traceId)
const only = (spans: readonly ReadableSpan[], name: string): ReadableSpan => {
  const found = spans.filter((span) => span.name === name)
  if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} spans named ${name}`)
  return found[0]
}
const idOf = (span: ReadableSpan) => span.spanContext().spanId
const below = (spans: readonly ReadableSpan[], parent: ReadableSpan) =>
  spans
    .filter(({ parentSpanContext }) => parentSpanContext?.spanId === idOf(parent))
    .map(({ name }) => name)
    .toSorted()

describe('with an OpenTelemetry SDK', () => {
  test('producer, call-back, pull, handler and settle are one trace', async () => {
    const { url } = await startService()
    let traceId = ''
    await inSpan('compute', async (traceparent) => {
      traceId = traceparent.split('-')[1] ?? ''
      await new Producer(url).callBack([descriptor('orders', 0, 0)], { traceparent })
    })
    const worker = new Worker(url, () => undefined, { untilIdle: true, around })
    await worker.run()

    const spans = spansOf(traceId)
    const [compute, callBack, settle] = ['compute', 'POST /call-back', 'POST /settle'].map((name) =>
      only(spans, name),
    ) as [ReadableSpan, ReadableSpan, ReadableSpan]
    expect(below(spans, compute)).toEqual(['POST /call-back'])
    expect(below(spans, callBack)).toEqual(['POST /settle', 'answer', 'batch', 'handle', 'pull', 'receive'])
    expect(below(spans, settle)).toEqual(['answer', 'batch', 'receive'])
    for (const batch of spans.filter(({ name }) => name === 'batch'))
      expect(below(spans, batch)).toEqual(['append'])
    // The pull itself came without a trace context, so it has its own trace, linked to that of the partition.
    const pulls = exporter.getFinishedSpans().filter(({ name }) => name === 'GET /pull')
    const linked = only(spans, 'pull').links[0]?.context.traceId
    expect(pulls.map((span) => span.spanContext().traceId)).toContain(linked)
    expect(only(spans, 'pull').attributes).toMatchObject({ 'baton.task': 'orders' })
    for (const span of [...pulls, settle]) expect(span.attributes['http.response.status_code']).toBe(200)
  })

  test('renewing a lease continues the trace, and a request about two traces is in neither', async () => {
    const { url } = await startService('--lease-seconds', '1')
    const client = new BatonClient(url)
    const ids: string[] = []
    for (const index of [0, 1])
      await inSpan('compute', async (traceparent) => {
        ids.push(traceparent.split('-')[1] ?? '')
        await client.callBack([descriptor('orders', 0, index)], { traceparent })
      })
    const renewed = (traceId: string) => spansOf(traceId).some(({ name }) => name === 'POST /renew')
    const anyRenewal = () => exporter.getFinishedSpans().filter(({ name }) => name === 'POST /renew')
    const first = new Worker(url, async () => void (await until(() => renewed(ids[0] ?? ''))), {
      untilIdle: true,
      tasks: ['orders'],
    })
    // Two leases at a time: their renewals are about two traces.
    const both = new Worker(url, async () => void (await until(() => anyRenewal().length > 0)), {
      untilIdle: true,
      concurrency: 2,
    })
    await both.run()
    expect(ids.some(renewed)).toBe(false)
    await client.retry('orders', { done: true })
    await first.run()
    expect(renewed(ids[0] ?? '')).toBe(true)
  })

  test('failed requests are spans with an error, and spans of others are unchanged', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    await expect(client.callBack([{ ...descriptor('orders', 0, 0), record_count: -1 }])).rejects.toThrow()
    await client.callBack([descriptor('orders', 0, 0)])
    const spans = exporter.getFinishedSpans()
    const [refused, taken] = spans.filter(({ name }) => name === 'POST /call-back')
    expect(refused?.attributes).toEqual({
      'error.type': 'contract_violation',
      'http.response.status_code': 422,
    })
    expect(taken?.attributes).toEqual({ 'http.response.status_code': 200, 'baton.task': 'orders' })
    expect(below(spans, refused as ReadableSpan)).toEqual(['receive'])
    expect(taken?.spanContext().traceId).not.toBe(refused?.spanContext().traceId)
    expect(below(spans, taken as ReadableSpan)).toEqual(['answer', 'batch', 'receive'])
  })

  test('requests that share a batch are linked to it', async () => {
    const { url } = await startService()
    const client = new BatonClient(url)
    const tasks = Array.from({ length: 20 }, (_, at) => `task-${at}`)
    await Promise.all(tasks.map((task) => client.callBack([descriptor(task, 0, 0)])))
    const spans = exporter.getFinishedSpans()
    const requests = new Set(spans.filter(({ name }) => name === 'POST /call-back').map(idOf))
    const batches = spans.filter(({ name }) => name === 'batch')
    const served = batches.flatMap(({ parentSpanContext, links }) => [
      parentSpanContext?.spanId,
      ...links.map((link) => link.context.spanId),
    ])
    expect(new Set(served)).toEqual(requests)
    expect(served).toHaveLength(20)
  })
})
