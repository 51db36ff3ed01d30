import Type, { type Static, type TSchema, type TSchemaOptions } from 'typebox'

/** A count, level or index. The maximum is the largest safe integer. */
export function count(options: TSchemaOptions = {}) {
  return Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, ...options })
}

export function timestamp(options: TSchemaOptions = {}) {
  return Type.String({ format: 'date-time', examples: ['2026-03-01T12:00:00.000Z'], ...options })
}

/**
 * The value or null. A scalar becomes one schema with two types, which serialisers handle without trying
 * branches.
 */
export function orNull<S extends TSchema>(schema: S) {
  const { type, enum: words } = schema as { type?: unknown; enum?: unknown }
  if (words === undefined && typeof type === 'string' && type !== 'object' && type !== 'array') {
    return Type.Unsafe<Static<S> | null>({ ...schema, type: [type, 'null'] })
  }
  return Type.Unsafe<Static<S> | null>(Type.Union([schema, Type.Null()]))
}

/** One of several strings, as a plain JSON Schema enum. */
export function oneOf<const W extends readonly string[]>(words: W, options: TSchemaOptions = {}) {
  return Type.Unsafe<W[number]>({ type: 'string', enum: [...words], ...options })
}

/** A `traceparent` of W3C Trace Context. */
export function traceparent() {
  return Type.String({
    description: 'The trace context of the call-back (W3C Trace Context); absent if it had none',
    examples: ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'],
  })
}
