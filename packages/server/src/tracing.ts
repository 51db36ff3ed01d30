import type { IncomingHttpHeaders } from 'node:http'
import { readTraceparent } from '@baton/protocol'
import type { Context, ProxyTracerProvider, Span, SpanContext, Tracer } from '@opentelemetry/api'
import type { BatchTracing } from './handoff/batcher.ts'
import type { Disk } from './handoff/disk.ts'
import type { HandOffAnswers } from './handoff/store.ts'
import { RequestProblem } from './http/answers/problems.ts'
import type { RequestTracing } from './http/requests/request-tracing.ts'
import { version } from './version.ts'

type Api = typeof import('@opentelemetry/api')

/**
 * Spans, where the user has brought an OpenTelemetry SDK and registered it before the service starts (`node --import`).
 * Undefined without one: then nothing is traced, and nothing is paid for it.
 */
export async function openTracing(): Promise<Tracing | undefined> {
  const api = await import('@opentelemetry/api').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  })
  // A provider without a delegate is what the API has until an SDK is registered.
  const provider = api?.trace.getTracerProvider() as ProxyTracerProvider | undefined
  const tracer = provider?.getDelegateTracer?.('baton', version)
  return api === undefined || tracer === undefined ? undefined : new Tracing(api, tracer)
}

/** A request that is being served. */
interface Traced {
  readonly span: Span
  readonly context: Context
  /** Until its order goes to the batcher. */
  receiving: Span | undefined
  /** When the last batch with an order of it was through. */
  answerableAt: number | undefined
  isOver: boolean
}

/** The most links of a span by OpenTelemetry's default. */
const MAX_LINKS = 128

/**
 * A request is a span with the spans `receive`, `batch` and `answer` in it. `append` is within the batch, which belongs to
 * the trace of its first request and is linked to the others. Contexts outlive what they were made for, because timers and
 * the next request of a connection inherit them: each is asked whether it is over.
 */
export class Tracing implements RequestTracing, BatchTracing {
  readonly #api: Api
  readonly #tracer: Tracer
  readonly #requestKey: symbol
  readonly #batchKey: symbol

  constructor(api: Api, tracer: Tracer) {
    this.#api = api
    this.#tracer = tracer
    this.#requestKey = api.createContextKey('baton request')
    this.#batchKey = api.createContextKey('baton batch')
  }

  serve: RequestTracing['serve'] = (name, serve) => (exchange, body) =>
    this.#request(name, exchange.asked.headers, Date.now(), (traced) => {
      const answer: typeof exchange.answer = (text, headers, lost) => {
        const span = this.#tracer.startSpan('answer', {}, traced.context)
        exchange.answer(text, headers, lost)
        span.end()
      }
      return serve({ ...exchange, answer }, body)
    })

  handler: RequestTracing['handler'] = (name, handler) => (request, reply) =>
    this.#request(name, request.raw.headers, Date.now() - reply.elapsedTime, async (traced) => {
      const result = await handler(request, reply)
      this.#tracer.startSpan('answer', { startTime: traced.answerableAt ?? Date.now() }, traced.context).end()
      return result
    })

  /** Of the span of the call-back, so that what follows is below it. */
  traceparent(headers: IncomingHttpHeaders): string | null {
    const span = this.#current?.span.spanContext()
    if (span === undefined || !this.#api.isSpanContextValid(span))
      return readTraceparent(headers['traceparent']?.toString())
    return `00-${span.traceId}-${span.spanId}-${(span.traceFlags & 0xff).toString(16).padStart(2, '0')}`
  }

  current(): Traced | undefined {
    const traced = this.#current
    traced?.receiving?.end()
    if (traced !== undefined) traced.receiving = undefined
    return traced
  }

  async batch(requests: readonly unknown[], run: () => Promise<HandOffAnswers>): Promise<HandOffAnswers> {
    const startTime = Date.now()
    const traced = [...new Set(requests as readonly (Traced | undefined)[])].filter(
      (one) => one !== undefined,
    )
    const [first, ...others] = traced
    if (first === undefined) return this.#handedOut(await run(), startTime)
    const span = this.#tracer.startSpan(
      'batch',
      {
        startTime,
        attributes: { 'baton.batch.requests': requests.length },
        links: others.slice(0, MAX_LINKS).map((other) => ({ context: other.span.spanContext() })),
      },
      first.context,
    )
    const batch = { isOver: false }
    const context = this.#api.trace.setSpan(first.context, span).setValue(this.#batchKey, batch)
    try {
      return this.#handedOut(await this.#api.context.with(context, run), startTime, span.spanContext())
    } catch (error) {
      this.#failed(span, error)
      throw error
    } finally {
      batch.isOver = true
      span.end()
      for (const one of traced) one.answerableAt = Date.now()
    }
  }

  /** The same disk, with a span for each append of a batch. */
  watch<Watched extends Pick<Disk, 'append'>>(disk: Watched): Watched {
    const append = disk.append.bind(disk)
    disk.append = async (entry) => {
      const active = this.#api.context.active()
      const batch = active.getValue(this.#batchKey) as { readonly isOver: boolean } | undefined
      if (batch === undefined || batch.isOver) return append(entry)
      const span = this.#tracer.startSpan('append', { attributes: { 'baton.entry': entry.number } }, active)
      try {
        return await append(entry)
      } catch (error) {
        this.#failed(span, error)
        throw error
      } finally {
        span.end()
      }
    }
    return disk
  }

  get #current(): Traced | undefined {
    const traced = this.#api.context.active().getValue(this.#requestKey) as Traced | undefined
    return traced?.isOver === false ? traced : undefined
  }

  async #request<Result>(
    name: string,
    headers: IncomingHttpHeaders,
    startTime: number,
    run: (traced: Traced) => Promise<Result>,
  ): Promise<Result> {
    const { context, propagation, trace, ROOT_CONTEXT, SpanKind } = this.#api
    const active = context.active()
    const outer = active.getValue(this.#requestKey) === undefined ? active : ROOT_CONTEXT
    const parent = trace.getSpan(outer) === undefined ? propagation.extract(outer, headers) : outer
    const span = this.#tracer.startSpan(name, { kind: SpanKind.SERVER, startTime }, parent)
    const within = trace.setSpan(parent, span)
    const receiving = this.#tracer.startSpan('receive', { startTime }, within)
    const traced: Traced = { span, context: within, receiving, answerableAt: undefined, isOver: false }
    try {
      return await context.with(within.setValue(this.#requestKey, traced), () => run(traced))
    } catch (error) {
      this.#failed(span, error)
      throw error
    } finally {
      traced.isOver = true
      traced.receiving?.end()
      span.end()
    }
  }

  /** What was handed out belongs to the trace that it was called back in: there the pull is a span, too. */
  #handedOut(answers: HandOffAnswers, startTime: number, batch?: SpanContext): HandOffAnswers {
    const { trace, ROOT_CONTEXT } = this.#api
    const links = batch === undefined ? [] : [{ context: batch }]
    for (const { partitions } of answers.pulls) {
      const counts = new Map<string, number>()
      for (const { traceparent } of partitions)
        if (traceparent != null) counts.set(traceparent, (counts.get(traceparent) ?? 0) + 1)
      for (const [traceparent, count] of counts) {
        const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-')
        const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
        const attributes = { 'baton.pull.partitions': count }
        const options = { startTime, links, attributes }
        this.#tracer.startSpan('pull', options, trace.setSpanContext(ROOT_CONTEXT, remote)).end()
      }
    }
    return answers
  }

  /** What is wrong with a request is no error of the service. */
  #failed(span: Span, error: unknown): void {
    const text = error instanceof Error ? error.message : String(error)
    if (error instanceof RequestProblem) span.setAttribute('error.type', error.code)
    else span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message: text })
  }
}
