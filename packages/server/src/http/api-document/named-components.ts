import type { TSchema } from 'typebox'

const REFERENCE = '#/components/schemas/'

type Json = Readonly<Record<string, unknown>>

/**
 * Describes each schema that has a name once, as a component, and refers to it wherever it occurs: what generates
 * clients has one type for it then, and a name for that type. Routes and checks keep the schemas as they are, whole.
 */
export function withComponents<Document extends { readonly components?: object }>(
  document: Document,
  schemas: Readonly<Record<string, TSchema>>,
): Document {
  const names = new Map(Object.entries(schemas).map(([name, schema]) => [shapeOf({ ...schema }), name]))

  const referring = (part: unknown): unknown => {
    if (!isJson(part)) return Array.isArray(part) ? part.map(referring) : part
    const name = names.get(shapeOf(part))
    return name === undefined ? referringWithin(part) : referenceTo(name, part, { ...schemas[name] })
  }
  const referringWithin = (part: Json) =>
    Object.fromEntries(Object.entries(part).map(([key, value]) => [key, referring(value)]))

  const components = Object.entries(schemas).map(([name, schema]) => [name, referringWithin({ ...schema })])
  return {
    ...(referringWithin({ ...document }) as Document),
    components: { ...document.components, schemas: Object.fromEntries(components) },
  }
}

/** What is said of it at its place alone stands beside the reference. */
function referenceTo(name: string, { description, examples }: Json, named: Json): Json {
  return {
    $ref: `${REFERENCE}${name}`,
    ...(description === undefined || description === named['description'] ? {} : { description }),
    ...(examples === undefined || named['examples'] !== undefined ? {} : { examples }),
  }
}

/** The same for those that differ only in what is said about the whole. */
function shapeOf({ description: _, examples: __, ...shape }: Json): string {
  return JSON.stringify(shape)
}

function isJson(part: unknown): part is Json {
  return typeof part === 'object' && part !== null && !Array.isArray(part)
}
