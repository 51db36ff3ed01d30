import type { FastifyReply, FastifyRequest } from 'fastify'
import { securityHeaders } from '../answers/security-headers.ts'
import type { PageFile } from './page-files.ts'

/** Nothing but what this service itself serves may run, load or be called; nobody may frame it. */
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

/** Files with a hash in their name never change; the two pages that name them are asked for anew each time. */
export const FOREVER = 'public, max-age=31536000, immutable'
export const ASK_AGAIN = 'no-cache'

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
