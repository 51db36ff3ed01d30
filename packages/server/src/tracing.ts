import type { IncomingHttpHeaders } from 'node:http'
import { errorCodes, readTraceparent } from '@baton/protocol'
import type { Context, ProxyTracerProvider, Span, SpanContext, Tracer } from '@opentelemetry/api'
import type { BatchTracing } from './handoff/batcher.ts'
import type { Disk } from './handoff/disk.ts'
import type { HandOffAnswers } from './handoff/store.ts'
import { RequestProblem } from './http/answers/problems.ts'
import type { RequestTracing } from './http/route-context.ts'
import { version } from './version.ts'

type Api = typeof import('@opentelemetry/api')

/** Undefined unless an OpenTelemetry SDK was registered before the start (`node --import`). */
export async function openTracing(): Promise<Tracing | undefined> {
  const api = await import('@opentelemetry/api').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  })
  // Until an SDK is registered, the API's provider has no delegate.
  const provider = api?.trace.getTracerProvider() as ProxyTracerProvider | undefined
  const tracer = provider?.getDelegateTracer?.('baton', version)
  return api === undefined || tracer === undefined ? undefined : new Tracing(api, tracer)
}

/** A request in progress. */
interface Traced {
  readonly span: Span
  readonly context: Context
  /** Open until the request is passed to the batcher. */
  receiving: Span | undefined
  /** When the last batch with a part of it was finished. */
  answerableAt: number | undefined
  isOver: boolean
}

/** The names of OpenTelemetry's conventions for HTTP, and of ours. */
const STATUS = 'http.response.status_code'
const TASK = 'baton.task'

/** OpenTelemetry's default limit of links per span. */
const MAX_LINKS = 128

/**
 * A request is a span with the child spans `receive`, `batch` and `answer`. `append` is a child of the batch,
 * which belongs to the trace of its first request and is linked to the others. Timers and the next request of
 * a connection inherit a context, so it can outlive its request or batch. Therefore each one is marked when
 * it is over.
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
    this.#request(name, exchange.head.headers, Date.now(), (traced) => {
      const answer: typeof exchange.answer = (text, headers, lost) => {
        const span = this.#tracer.startSpan('answer', {}, traced.context)
        exchange.answer(text, headers, lost)
        span.end()
        traced.span.setAttribute(STATUS, 200)
      }
      return serve({ ...exchange, answer }, body)
    })

  handler: RequestTracing['handler'] = (name, handler) => (request, reply) =>
    this.#request(name, request.raw.headers, Date.now() - reply.elapsedTime, async (traced) => {
      const result = await handler(request, reply)
      traced.span.setAttribute(STATUS, reply.statusCode)
      this.#tracer.startSpan('answer', { startTime: traced.answerableAt ?? Date.now() }, traced.context).end()
      return result
    })

  /** The traceparent of the call-back's span, so that later spans become its children. */
  traceparent(headers: IncomingHttpHeaders): string | null {
    const span = this.#current?.span.spanContext()
    if (span === undefined || !this.#api.isSpanContextValid(span))
      return readTraceparent(headers['traceparent']?.toString())
    return `00-${span.traceId}-${span.spanId}-${(span.traceFlags & 0xff).toString(16).padStart(2, '0')}`
  }

  about(taskId: string): void {
    this.#current?.span.setAttribute(TASK, taskId)
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

  /** Adds a `pull` span to the trace in which the partitions were called back. */
  #handedOut(answers: HandOffAnswers, startTime: number, batch?: SpanContext): HandOffAnswers {
    const { trace, ROOT_CONTEXT } = this.#api
    const links = batch === undefined ? [] : [{ context: batch }]
    for (const { partitions } of answers.pulls) {
      const counts = new Map<string, number>()
      const tasks = new Map<string, string>()
      for (const { traceparent, taskId } of partitions)
        if (traceparent != null) {
          counts.set(traceparent, (counts.get(traceparent) ?? 0) + 1)
          // Each call-back has its own span, and is about one task.
          tasks.set(traceparent, taskId)
        }
      for (const [traceparent, count] of counts) {
        const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-')
        const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
        const attributes = { 'baton.pull.partitions': count, [TASK]: tasks.get(traceparent) }
        const options = { startTime, links, attributes }
        this.#tracer.startSpan('pull', options, trace.setSpanContext(ROOT_CONTEXT, remote)).end()
      }
    }
    return answers
  }

  /** An invalid request is not an error of the service. */
  #failed(span: Span, error: unknown): void {
    const text = error instanceof Error ? error.message : String(error)
    if (error instanceof RequestProblem)
      span.setAttributes({ 'error.type': error.code, [STATUS]: errorCodes[error.code].status })
    else span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message: text })
  }
}
