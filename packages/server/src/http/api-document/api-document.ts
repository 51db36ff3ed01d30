import { namedSchemas, PROBLEM_MEDIA_TYPE, type ProblemCode, portablePattern } from '@baton/protocol'
import type { TSchema } from 'typebox'
import type { Access } from '../admission/admission.ts'
import { operationExamples } from './api-examples.ts'
import { problemExamples } from './api-problems.ts'

const REFERENCE = '#/components/schemas/'

type Json = Readonly<Record<string, unknown>>

/**
 * Describes each schema that has a name once, as a component, and refers to it wherever it occurs: what generates
 * clients has one type for it then, and a name for that type. Routes and checks keep the schemas as they are, whole.
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

/** Who an operation is for, as the reference groups them. */
type Actor = 'producer' | 'worker' | 'operator' | 'anyone'

const actors: Record<Access, Actor> = {
  producer: 'producer',
  settings: 'producer',
  worker: 'worker',
  operator: 'operator',
  fleet: 'operator',
  seal: 'operator',
  subscriptions: 'operator',
  view: 'operator',
  overview: 'operator',
  task: 'operator',
  audit: 'operator',
  anyone: 'anyone',
  open: 'anyone',
  probe: 'anyone',
}

export const actorOf = (access: Access): Actor => actors[access]

interface Content {
  examples?: Record<string, unknown>
}

interface Operation {
  operationId?: string
  requestBody?: { required?: boolean; content?: Record<string, Content> }
  responses?: Record<string, { content?: Record<string, Content> }>
}

/** What a route's settings say about its operation. */
export interface OperationFacts {
  /** What it can be refused with. */
  readonly problems: readonly ProblemCode[]
  readonly isBodyOptional: boolean
}

/**
 * Adds to the document what schemas do not say: an example of each request and answer, the facts of each operation,
 * given by its id, and the names of what is sent and answered.
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
    // It is written as required for every route that takes one.
    if (isBodyOptional && operation.requestBody !== undefined) operation.requestBody.required = false
  }
  const named = Object.fromEntries(
    Object.entries(problemExamples).map(([code, value]) => [code, { summary: value.title, value }]),
  )
  const whole = { ...document, components: { ...components, examples: named } }
  return portable(withComponents(whole, namedSchemas(tableField)))
}

/** A pattern that a library cannot read costs its user the whole document. */
function portable<Part>(part: Part): Part {
  if (typeof part !== 'object' || part === null) return part
  if (Array.isArray(part)) return part.map(portable) as Part
  const told = Object.entries(part).map(([key, value]) =>
    key === 'pattern' && typeof value === 'string' ? [key, portablePattern(value)] : [key, portable(value)],
  )
  return Object.fromEntries(told)
}

function addExample(content: Record<string, Content> | undefined, value: unknown): void {
  for (const part of Object.values(content ?? {})) part.examples = { usual: { value } }
}

function addProblems(content: Record<string, Content> | undefined, codes: readonly ProblemCode[]): void {
  const part = content?.[PROBLEM_MEDIA_TYPE]
  if (part === undefined) return
  part.examples = Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]))
}
