import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { securityHeaders } from '../answers/security-headers.ts'

export interface PageFile {
  readonly type: string
  readonly etag: string
  readonly body: Buffer
  /** Compressed when the page was built; stored next to the file. */
  readonly brotli: Buffer | undefined
  readonly gzip: Buffer | undefined
}

/** In the published package, the page is next to the code; in the repository, it is a separate package. */
const folders = [
  new URL('../../page/', import.meta.url),
  new URL('../../../../dashboard/dist/', import.meta.url),
]

const mediaTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
}

/**
 * The files of the built page by path. They are small and kept in memory, and requests can only reach files
 * in this map. Empty when the page was not built.
 */
export function readPageFiles(): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>()
  const folder = folders.map((url) => fileURLToPath(url)).find((path) => existsSync(`${path}index.html`))
  if (folder === undefined) return files
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const type = mediaTypes[extname(path)]
    if (type === undefined) continue
    const body = readFileSync(folder + path)
    files.set(path.replaceAll('\\', '/'), {
      type,
      etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
      body,
      brotli: readIfThere(`${folder}${path}.br`),
      gzip: readIfThere(`${folder}${path}.gz`),
    })
  }
  return files
}

function readIfThere(path: string): Buffer | undefined {
  return existsSync(path) ? readFileSync(path) : undefined
}

/** The page may only load, run and call what this service serves, and must not be framed. */
export const pageHeaders = {
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
export const IMMUTABLE = 'public, max-age=31536000, immutable'
export const REVALIDATE = 'no-cache'

export function sendPageFile(
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
    .some(([name, weight]) => name?.trim() === coding && !/^\s*q=0(?:\.0*)?\s*$/.test(weight ?? ''))
}
