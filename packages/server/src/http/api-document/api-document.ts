import { namedSchemas, PROBLEM_MEDIA_TYPE, type ProblemCode, portablePattern } from '@baton/protocol'
import type { TSchema } from 'typebox'
import { operationExamples } from './api-examples.ts'
import { problemExamples } from './api-problems.ts'

const REFERENCE = '#/components/schemas/'

type Json = Readonly<Record<string, unknown>>

/**
 * Moves named schemas to components and replaces each occurrence by a reference, so that client generators
 * create one named type for each. The schemas of routes and checks are not changed.
 */
function withComponents<Document extends { readonly components?: object }>(
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

/** A reference to a component, with the description and examples that only this occurrence has. */
function referenceTo(name: string, { description, examples }: Json, named: Json): Json {
  return {
    $ref: `${REFERENCE}${name}`,
    ...(description === undefined || description === named['description'] ? {} : { description }),
    ...(examples === undefined || named['examples'] !== undefined ? {} : { examples }),
  }
}

/** A key that ignores the description and examples of the whole schema. */
function shapeOf({ description: _, examples: __, ...shape }: Json): string {
  return JSON.stringify(shape)
}

function isJson(part: unknown): part is Json {
  return typeof part === 'object' && part !== null && !Array.isArray(part)
}

interface Content {
  examples?: Record<string, unknown>
}

interface Operation {
  operationId?: string
  requestBody?: { required?: boolean; content?: Record<string, Content> }
  responses?: Record<string, { content?: Record<string, Content> }>
}

/** What the configuration of a route says about its operation. */
export interface OperationFacts {
  /** The problems that the operation can answer with. */
  readonly problems: readonly ProblemCode[]
  readonly isBodyOptional: boolean
}

/**
 * Adds what the schemas do not contain: examples of requests and responses, the facts of each operation by
 * its id, and named components.
 */
export function completeDocument<Document extends object>(
  document: Document,
  tableField: string,
  facts: ReadonlyMap<string, OperationFacts>,
): Document {
  const examples = operationExamples(tableField)
  const { components = {}, paths = {} } = document as {
    components?: object
    paths?: Record<string, Record<string, Operation>>
  }
  for (const operation of Object.values(paths).flatMap((path) => Object.values(path))) {
    const { operationId = '' } = operation
    const example = examples[operationId]
    if (example?.request !== undefined) addExample(operation.requestBody?.content, example.request)
    if (example !== undefined) addExample(operation.responses?.['200']?.content, example.answer)
    const { problems = [], isBodyOptional = false } = facts.get(operationId) ?? {}
    addProblems(operation.responses?.['default']?.content, problems)
    // The generator marks every body as required.
    if (isBodyOptional && operation.requestBody !== undefined) operation.requestBody.required = false
  }
  const named = Object.fromEntries(
    Object.entries(problemExamples).map(([code, value]) => [code, { summary: value.title, value }]),
  )
  const whole = { ...document, components: { ...components, examples: named } }
  return portable(withComponents(whole, namedSchemas(tableField)))
}

/**
 * Makes patterns portable, because a pattern that a library cannot parse makes the whole document unusable
 * for it.
 */
function portable<Part>(part: Part): Part {
  if (typeof part !== 'object' || part === null) return part
  if (Array.isArray(part)) return part.map(portable) as Part
  const entries = Object.entries(part).map(([key, value]) =>
    key === 'pattern' && typeof value === 'string' ? [key, portablePattern(value)] : [key, portable(value)],
  )
  return Object.fromEntries(entries)
}

function addExample(content: Record<string, Content> | undefined, value: unknown): void {
  for (const part of Object.values(content ?? {})) part.examples = { usual: { value } }
}

function addProblems(content: Record<string, Content> | undefined, codes: readonly ProblemCode[]): void {
  const part = content?.[PROBLEM_MEDIA_TYPE]
  if (part === undefined) return
  part.examples = Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]))
}
