import type { FastifyInstance } from 'fastify'
import { sendUnbuilt } from './page.ts'
import { ASK_AGAIN, sendPageFile } from './page-answer.ts'
import type { PageFile } from './page-files.ts'

/** The API reference at `/docs`: a page that reads `/openapi.json` and shows it. */
export function apiReferenceRoute(app: FastifyInstance, files: ReadonlyMap<string, PageFile>): void {
  const docs = files.get('docs.html')
  app.route({
    method: 'GET',
    url: '/docs',
    config: { access: 'open' },
    schema: { hide: true },
    handler: async (request, reply) =>
      docs === undefined ? sendUnbuilt(reply) : sendPageFile(request, reply, docs, ASK_AGAIN),
  })
}
