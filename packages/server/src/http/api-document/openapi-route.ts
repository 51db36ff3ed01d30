import type { ProblemCode } from '@baton/protocol'
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import { version } from '../../version.ts'
import { actorOf, completeDocument } from './api-document.ts'
import { problemsOf } from './api-problems.ts'

/** Must come before the routes: the document is made of what they say about themselves. */
export async function describeRoutes(
  app: FastifyInstance,
  { basePath, tableField }: { readonly basePath: string; readonly tableField: string },
): Promise<void> {
  const problems = new Map<string, readonly ProblemCode[]>()
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
        { name: 'health', description: 'For whoever runs the service' },
      ],
      components: {
        securitySchemes: {
          token: { type: 'http', scheme: 'bearer', description: 'Where the service was given tokens' },
        },
      },
      security: [{}, { token: [] }],
    },
    transform: ({ schema, url, route }) => {
      const access = route.config?.access ?? 'open'
      const { operationId, body } = schema as { operationId?: string; body?: unknown }
      if (operationId !== undefined)
        problems.set(operationId, problemsOf(operationId, { access, takesBody: body !== undefined }))
      return { url, schema: { ...schema, 'x-actor': actorOf(access) } }
    },
    transformObject: (document) =>
      'openapiObject' in document
        ? completeDocument(document.openapiObject, tableField, problems)
        : document.swaggerObject,
    hideUntagged: true,
  })
}

export function openapiRoute(app: FastifyInstance): void {
  app.route({
    method: 'GET',
    url: '/openapi.json',
    config: { access: 'anyone' },
    schema: { hide: true },
    handler: (_request, reply) => reply.send(app.swagger()),
  })
}
