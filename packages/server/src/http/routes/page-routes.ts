import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import sea from 'node:sea'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { securityHeaders } from '../answers/headers.ts'

export interface PageFile {
  readonly type: string
  readonly etag: string
  readonly body: Buffer
  /** Compressed when the page was built; stored next to the file. */
  readonly brotli: Buffer | undefined
  readonly gzip: Buffer | undefined
}

const mediaTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
}

/** The files of the page by path, in memory; requests reach no others. Empty if it was not built. */
export function readPageFiles(): ReadonlyMap<string, PageFile> {
  const built = sea.isSea() ? embeddedFiles() : filesInFolder()
  const files = new Map<string, PageFile>()
  for (const [path, body] of built) {
    const type = mediaTypes[extname(path)]
    if (type === undefined) continue
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
    files.set(path, { type, etag, body, brotli: built.get(`${path}.br`), gzip: built.get(`${path}.gz`) })
  }
  return files
}

/** In the one-file command, the page is embedded (`release/binary.ts`). */
function embeddedFiles(): Map<string, Buffer> {
  const folder = 'page/'
  return new Map(sea.getAssetKeys().map((key) => [key.slice(folder.length), Buffer.from(sea.getAsset(key))]))
}

/** In the published package, the page is next to the code; in the repository, it is a separate package. */
function filesInFolder(): Map<string, Buffer> {
  const folder = ['../../page/', '../../../../dashboard/dist/']
    .map((path) => fileURLToPath(new URL(path, import.meta.url)))
    .find((path) => existsSync(`${path}index.html`))
  if (folder === undefined) return new Map()
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (path) => extname(path) !== '',
  )
  return new Map(paths.map((path) => [path.replaceAll('\\', '/'), readFileSync(folder + path)]))
}

/** The page may only load, run and call what this service serves, and must not be framed. */
const pageHeaders = {
  ...securityHeaders(false),
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
}

/** Files with a hash in their name never change; the two HTML pages that refer to them are revalidated. */
const IMMUTABLE = 'public, max-age=31536000, immutable'
const REVALIDATE = 'no-cache'

function sendPageFile(
  request: FastifyRequest,
  reply: FastifyReply,
  file: PageFile,
  caching: string,
): FastifyReply {
  reply.headers({ ...pageHeaders, 'cache-control': caching, etag: file.etag, vary: 'accept-encoding' })
  if (request.headers['if-none-match']?.includes(file.etag)) return reply.code(304).send()
  reply.type(file.type)
  const accepted = String(request.headers['accept-encoding'] ?? '')
  if (file.brotli !== undefined && accepts(accepted, 'br')) {
    return reply.header('content-encoding', 'br').send(file.brotli)
  }
  if (file.gzip !== undefined && accepts(accepted, 'gzip')) {
    return reply.header('content-encoding', 'gzip').send(file.gzip)
  }
  return reply.send(file.body)
}

function accepts(header: string, coding: string): boolean {
  return header
    .split(',')
    .map((item) => item.trim().toLowerCase().split(';'))
    .some(([name, quality]) => name?.trim() === coding && !/^\s*q=0(?:\.0*)?\s*$/.test(quality ?? ''))
}

const open = { config: { access: 'open' as const }, schema: { hide: true } }

/** The page, its files and the API reference. Each has its own route, so that no other path can be reached. */
export function pageRoutes(app: FastifyInstance, files: ReadonlyMap<string, PageFile>): void {
  const sendHtml = (request: FastifyRequest, reply: FastifyReply, path: string) => {
    const file = files.get(path)
    return file === undefined ? sendUnbuilt(reply) : sendPageFile(request, reply, file, REVALIDATE)
  }
  app.route({
    method: 'GET',
    url: '/',
    ...open,
    handler: async (request, reply) => {
      const segment = unfinishedSegment(request)
      // Under a base path, relative links of the page need the trailing slash.
      return segment === undefined
        ? sendHtml(request, reply, 'index.html')
        : reply.redirect(`${segment}/`, 308)
    },
  })
  app.route({
    method: 'GET',
    url: '/docs',
    ...open,
    handler: async (request, reply) => sendHtml(request, reply, 'docs.html'),
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

/** Undefined with a trailing slash. The redirect is relative: a proxy may add a prefix to the path. */
function unfinishedSegment(request: FastifyRequest): string | undefined {
  const segment = request.url.split('?', 1)[0]?.split('/').at(-1)
  return segment === '' ? undefined : segment
}

const UNBUILT = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Baton</title>
<h1>Baton is running</h1>
<p>The page was not built. In a checkout, <code>npm ci</code> builds it, and it stays
when <code>npm ci --omit=dev</code> follows; restart the service afterwards. Everything else works without the page: see <a href="openapi.json">openapi.json</a> and
<a href="readyz">readyz</a>.</p>
</html>
`

function sendUnbuilt(reply: FastifyReply): FastifyReply {
  return reply
    .headers({ ...pageHeaders, 'cache-control': REVALIDATE })
    .type('text/html; charset=utf-8')
    .send(UNBUILT)
}
