import {
  namedSchemas,
  PROBLEM_MEDIA_TYPE,
  type ProblemCode,
  portablePattern,
  problemSchema,
} from '@baton/protocol'
import swagger from '@fastify/swagger'
import type { FastifyInstance, FastifyServerOptions } from 'fastify'
import type { TSchema } from 'typebox'
import { version } from '../../version.ts'
import { accessRule } from '../admission/access.ts'
import { JSON_TYPE } from '../answers/headers.ts'
import { problemExamples, problemsOf } from './api-problems.ts'
import { operationDescriptions } from './operation-descriptions.ts'

type SchemaController = NonNullable<FastifyServerOptions['schemaController']>

/**
 * The schemas of routes are documentation only. Requests are validated by functions of the protocol package,
 * which give readable messages, and responses are built to match. Replacing Fastify's compilers avoids
 * loading them at every start (bench scenario cold-start).
 */
export const descriptiveSchemas = {
  compilersFactory: {
    buildValidator: () => () => undefined,
    buildSerializer: () => () => (answer: unknown) => JSON.stringify(answer),
  },
  // Fastify's type only allows validators of ajv.
} as unknown as SchemaController

/** Must be registered before the routes, because the document is generated from them. */
export async function describeRoutes(
  app: FastifyInstance,
  { basePath, tableField }: { readonly basePath: string; readonly tableField: string },
): Promise<void> {
  const optionalBodies = new Set<string>()
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Baton',
        version,
        description:
          'Hands the partitions of a computed table to a fleet of workers, each to exactly one at a time. ' +
          'All strings must be well-formed Unicode: lone surrogates are refused, even where no pattern excludes them.',
        contact: { name: 'Baton' },
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: basePath === '' ? '/' : basePath }],
      tags: [
        { name: 'hand-off', description: 'Call back, pull, renew, settle' },
        { name: 'tasks', description: 'Views and control of tasks' },
        { name: 'tables', description: 'Views, limits and pauses of compute tables' },
        { name: 'instances', description: 'Nodes, workers and producers' },
        { name: 'subscriptions', description: 'Webhooks and the events they send' },
        { name: 'health', description: 'For operations' },
      ],
      components: {
        securitySchemes: {
          token: { type: 'http', scheme: 'bearer', description: 'Required if the service has tokens' },
        },
      },
      security: [{}, { token: [] }],
    },
    transform: ({ schema, url, route }) => {
      const { access = 'open', bodyOptional: isBodyOptional = false } = route.config ?? {}
      const described = schema as DescribedSchema
      const { operationId = '', summary } = described
      if (isBodyOptional) optionalBodies.add(operationId)
      const problems = problemsOf(operationId, { access, takesBody: described.body !== undefined })
      return {
        url,
        schema: {
          description: operationDescriptions[operationId] ?? `${summary}.`,
          ...described,
          response: { ...described.response, default: refusals(problems) },
          'x-actor': accessRule(access)?.actor ?? 'anyone',
        },
      }
    },
    transformObject: (document) =>
      'openapiObject' in document
        ? completeDocument(document.openapiObject, tableField, optionalBodies)
        : document.swaggerObject,
    hideUntagged: true,
  })
}

export function openapiRoute(app: FastifyInstance): void {
  // Serialized once: it is large, and the same for all callers.
  let document: Buffer | undefined
  app.route({
    method: 'GET',
    url: '/openapi.json',
    config: { access: 'anyone', servedByAll: true },
    schema: { hide: true },
    handler: (_request, reply) => {
      document ??= Buffer.from(JSON.stringify(app.swagger()))
      return reply.type(JSON_TYPE).send(document)
    },
  })
}

interface DescribedSchema {
  readonly operationId?: string
  readonly summary?: string
  readonly body?: unknown
  readonly response?: object
}

const refusals = (codes: readonly ProblemCode[]) => ({
  description: 'Why the request was refused or failed',
  content: {
    [PROBLEM_MEDIA_TYPE]: {
      schema: problemSchema,
      examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
    },
  },
})

const REFERENCE = '#/components/schemas/'

type Json = Readonly<Record<string, unknown>>

/** Moves named schemas to components, so that client generators create one named type for each. */
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
  readonly schema: TSchema
  /** The generator moves the example of the whole schema of a request here. */
  example?: unknown
  examples?: Record<string, unknown>
}

/** The keywords that the composed examples use. */
interface Schema {
  readonly examples?: readonly unknown[]
  readonly default?: unknown
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly TSchema[]
  readonly type?: string | readonly string[]
  readonly items?: TSchema
  readonly properties?: Readonly<Record<string, TSchema>>
  readonly required?: readonly string[]
  readonly minimum?: number
}

interface Operation {
  operationId?: string
  requestBody?: { required?: boolean; content?: Record<string, Content> }
  responses?: Record<string, { content?: Record<string, Content> }>
}

/** Adds what the schemas of routes cannot contain: examples, bodies that are optional, and named components. */
function completeDocument<Document extends object>(
  document: Document,
  tableField: string,
  optionalBodies: ReadonlySet<string>,
): Document {
  const { components = {}, paths = {} } = document as {
    components?: object
    paths?: Record<string, Record<string, Operation>>
  }
  for (const operation of Object.values(paths).flatMap((path) => Object.values(path))) {
    const { operationId = '' } = operation
    addExample(operation.requestBody?.content)
    addExample(operation.responses?.['200']?.content)
    // The generator marks every body as required.
    if (optionalBodies.has(operationId) && operation.requestBody !== undefined)
      operation.requestBody.required = false
  }
  const named = Object.fromEntries(
    Object.entries(problemExamples).map(([code, value]) => [code, { summary: value.title, value }]),
  )
  const whole = { ...document, components: { ...components, examples: named } }
  return portable(withComponents(whole, namedSchemas(tableField)))
}

/** One pattern that a library cannot parse makes the whole document unusable for it. */
function portable<Part>(part: Part): Part {
  if (typeof part !== 'object' || part === null) return part
  if (Array.isArray(part)) return part.map(portable) as Part
  const entries = Object.entries(part).map(([key, value]) =>
    key === 'pattern' && typeof value === 'string' ? [key, portablePattern(value)] : [key, portable(value)],
  )
  return Object.fromEntries(entries)
}

function addExample(content: Record<string, Content> | undefined): void {
  for (const part of Object.values(content ?? {})) {
    const { type, properties = {} } = part.schema as Schema
    // The body of most control requests is an empty object, which can be omitted.
    if (type === 'object' && Object.keys(properties).length === 0) continue
    const { example = exampleOf(part.schema) } = part
    part.examples = { usual: { value: example } }
    delete part.example
  }
}

/** The example of a schema, or one that is composed of its required fields, or of all if none is required. */
function exampleOf(schema: TSchema): unknown {
  const {
    examples,
    default: usual,
    const: only,
    enum: words,
    anyOf,
    type,
    items,
    properties = {},
    required = [],
    minimum = 0,
  } = schema as Schema
  if (examples !== undefined) return examples[0]
  if (usual !== undefined || only !== undefined) return usual ?? only
  if (words !== undefined) return words[0]
  if (anyOf?.[0] !== undefined) return exampleOf(anyOf[0])
  if (items !== undefined) return [exampleOf(items)]
  if (type === 'object') {
    const shown = required.length > 0 ? required : Object.keys(properties)
    return Object.fromEntries(shown.map((field) => [field, exampleOf(properties[field] as TSchema)]))
  }
  if (type === 'boolean') return false
  if (type === 'string') return ''
  return Array.isArray(type) ? null : minimum
}
