import { registerHooks } from 'node:module'

// Hides OpenTelemetry's API, as if it were not installed, to measure what tracing costs without an SDK.

registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== '@opentelemetry/api') return next(specifier, context)
    throw Object.assign(new Error(`${specifier} is hidden`), { code: 'ERR_MODULE_NOT_FOUND' })
  },
})
