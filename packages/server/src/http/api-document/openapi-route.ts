import swagger from '@fastify/swagger'
import type { FastifyInstance, FastifyServerOptions } from 'fastify'
import { version } from '../../version.ts'
import { accessRule } from '../admission/access.ts'
import { JSON_TYPE } from '../answers/headers.ts'
import { completeDocument, type OperationFacts } from './api-document.ts'
import { problemsOf } from './api-problems.ts'

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
  const facts = new Map<string, OperationFacts>()
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Baton',
        version,
        description:
          'Hands the partitions of a computed table to a fleet of workers, each to exactly one at a time. ' +
          'Texts are well-formed Unicode: besides what patterns say, lone surrogates are refused in all of them.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: basePath === '' ? '/' : basePath }],
      tags: [
        { name: 'hand-off', description: 'Call back, pull, renew, settle' },
        { name: 'tasks', description: 'How far tasks are, and control over them' },
        { name: 'instances', description: 'Who takes part' },
        { name: 'health', description: 'For operations' },
      ],
      components: {
        securitySchemes: {
          token: { type: 'http', scheme: 'bearer', description: 'Where the service was given tokens' },
        },
      },
      security: [{}, { token: [] }],
    },
    transform: ({ schema, url, route }) => {
      const { access = 'open', bodyOptional: isBodyOptional = false } = route.config ?? {}
      const { operationId, body } = schema as { operationId?: string; body?: unknown }
      if (operationId !== undefined) {
        const problems = problemsOf(operationId, { access, takesBody: body !== undefined })
        facts.set(operationId, { problems, isBodyOptional })
      }
      return { url, schema: { ...schema, 'x-actor': accessRule(access)?.actor ?? 'anyone' } }
    },
    transformObject: (document) =>
      'openapiObject' in document
        ? completeDocument(document.openapiObject, tableField, facts)
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
    config: { access: 'anyone' },
    schema: { hide: true },
    handler: (_request, reply) => {
      document ??= Buffer.from(JSON.stringify(app.swagger()))
      return reply.type(JSON_TYPE).send(document)
    },
  })
}
