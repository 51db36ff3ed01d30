import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { IMMUTABLE, type PageFile, pageHeaders, REVALIDATE, sendPageFile } from './page-files.ts'

const open = { config: { access: 'open' as const }, schema: { hide: true } }

/**
 * The page at `/` and the files that it loads. Each file has its own route, so that no other path can be
 * reached.
 */
export function pageRoutes(app: FastifyInstance, files: ReadonlyMap<string, PageFile>): void {
  const index = files.get('index.html')
  app.route({
    method: 'GET',
    url: '/',
    ...open,
    handler: async (request, reply) => {
      const segment = unfinishedSegment(request)
      // Under a base path, relative links of the page need the trailing slash.
      if (segment !== undefined) return reply.redirect(`${segment}/`, 308)
      return index === undefined ? sendUnbuilt(reply) : sendPageFile(request, reply, index, REVALIDATE)
    },
  })
  for (const [path, file] of files) {
    if (path.endsWith('.html')) continue
    const caching = path.startsWith('assets/') ? IMMUTABLE : REVALIDATE
    app.route({
      method: 'GET',
      url: `/${path}`,
      ...open,
      handler: async (request, reply) => sendPageFile(request, reply, file, caching),
    })
  }
}

/**
 * The last segment of a path without a trailing slash; undefined when there is one. The redirect is relative,
 * because a proxy may add a prefix to the path.
 */
function unfinishedSegment(request: FastifyRequest): string | undefined {
  const segment = request.url.split('?', 1)[0]?.split('/').at(-1)
  return segment === '' ? undefined : segment
}

const UNBUILT = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Baton</title>
<h1>Baton is running</h1>
<p>Its page is not here because it was not built. In a checkout, <code>npm run build:page</code> builds it; then restart
the service. Everything else works without it: see <a href="openapi.json">openapi.json</a> and
<a href="readyz">readyz</a>.</p>
</html>
`

function sendUnbuilt(reply: FastifyReply): FastifyReply {
  return reply
    .headers({ ...pageHeaders, 'cache-control': REVALIDATE })
    .type('text/html; charset=utf-8')
    .send(UNBUILT)
}

/** The API reference at `/docs`: a page that loads and renders `/openapi.json`. */
export function apiReferenceRoute(app: FastifyInstance, files: ReadonlyMap<string, PageFile>): void {
  const docs = files.get('docs.html')
  app.route({
    method: 'GET',
    url: '/docs',
    config: { access: 'open' },
    schema: { hide: true },
    handler: async (request, reply) =>
      docs === undefined ? sendUnbuilt(reply) : sendPageFile(request, reply, docs, REVALIDATE),
  })
}
