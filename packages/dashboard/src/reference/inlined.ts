const REFERENCE = '#/components/schemas/'

/** Replaces each reference with its schema, so that an operation can be read without looking up names. */
export function inlined<Document extends { readonly components: object }>(document: Document): Document {
  const { schemas = {} } = document.components as { schemas?: Readonly<Record<string, object>> }

  const resolved = (part: unknown): unknown => {
    if (typeof part !== 'object' || part === null) return part
    if (Array.isArray(part)) return part.map(resolved)
    const { $ref, ...others } = part as { $ref?: unknown }
    if (typeof $ref !== 'string' || !$ref.startsWith(REFERENCE)) return resolvedWithin(part)
    // Keywords next to the reference override those of the schema.
    return resolvedWithin({ ...schemas[$ref.slice(REFERENCE.length)], ...others })
  }
  const resolvedWithin = (part: object) =>
    Object.fromEntries(Object.entries(part).map(([key, value]) => [key, resolved(value)]))

  return resolvedWithin(document) as Document
}
