import { NodeTracerProvider, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'

// Takes the place of a user's SDK, which is registered before the service starts, by `node --import`.

const lineOf = (span: ReadableSpan) =>
  JSON.stringify({
    name: span.name,
    ...span.spanContext(),
    parent: span.parentSpanContext?.spanId ?? null,
  })

new NodeTracerProvider({
  spanProcessors: [
    new SimpleSpanProcessor({
      export: (spans, done) => {
        for (const span of spans) process.stderr.write(`span ${lineOf(span)}\n`)
        done({ code: 0 })
      },
      shutdown: async () => {},
    }),
  ],
}).register()
