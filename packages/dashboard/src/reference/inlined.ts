const REFERENCE = '#/components/schemas/'

/** A document with each schema at its place: people read an operation from top to bottom, without looking names up. */
export function inlined<Document extends { readonly components: object }>(document: Document): Document {
  const { schemas = {} } = document.components as { schemas?: Readonly<Record<string, object>> }

  const resolved = (part: unknown): unknown => {
    if (typeof part !== 'object' || part === null) return part
    if (Array.isArray(part)) return part.map(resolved)
    const { $ref, ...beside } = part as { $ref?: unknown }
    if (typeof $ref !== 'string' || !$ref.startsWith(REFERENCE)) return resolvedWithin(part)
    // What is said at this place counts more than what is said of it in general.
    return resolvedWithin({ ...schemas[$ref.slice(REFERENCE.length)], ...beside })
  }
  const resolvedWithin = (part: object) =>
    Object.fromEntries(Object.entries(part).map(([key, value]) => [key, resolved(value)]))

  return resolvedWithin(document) as Document
}
