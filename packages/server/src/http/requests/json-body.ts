import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { RequestProblem } from '../answers/problems.ts'
import { NotJson, parseJsonBytes } from './json-bytes.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route understands an empty body, whatever it is declared as. */
    bodyOptional?: boolean
    /** The route takes large bodies as bytes and has them read elsewhere. */
    readsLargeBodies?: boolean
  }
}

/**
 * Bodies from this size on are read on a thread of their own, where a route can do that: parsing and checking 50,000
 * descriptors held every other request up for 80 ms. Below it the way to the thread costs more than it saves.
 */
export const LARGE_BODY_BYTES = 256 * 2 ** 10

type Done = (error: Error | null, body?: unknown) => void

/**
 * Bodies are JSON in UTF-8 and nothing else. Fastify's own parser would replace bytes that are not, and look for
 * `__proto__`, which is safe here because bodies are only ever read field by field.
 */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, readJson)
  app.addContentTypeParser('*', refuseOtherTypes)
  app.addHook('onRoute', (route: RouteOptions) => {
    if ((route.method === 'POST' || route.method === 'PUT') && route.config?.bodyOptional !== true)
      route.preValidation = demandBody
  })
}

const NO_BYTES = Buffer.alloc(0)

/** Without body and content type nothing was parsed so far: the answer is the same as to an empty body. */
function demandBody(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  if (request.body === undefined) parsedBody(NO_BYTES)
  done()
}

function readJson(request: FastifyRequest, body: Buffer, done: Done): void {
  try {
    done(null, bodyOf(request, body))
  } catch (error) {
    done(error as Error)
  }
}

function bodyOf(request: FastifyRequest, body: Buffer): unknown {
  const fault = declaredOtherwise(request)
  if (fault !== undefined) throw new RequestProblem('unsupported_media_type', fault)
  if (body.length === 0 && request.routeOptions.config.bodyOptional === true) return undefined
  if (body.length >= LARGE_BODY_BYTES && request.routeOptions.config.readsLargeBodies === true) return body
  return parsedBody(body)
}

export function parsedBody(bytes: Buffer): unknown {
  try {
    return parseJsonBytes(bytes)
  } catch (error) {
    if (error instanceof NotJson) throw new RequestProblem('body_not_json', error.message)
    throw error
  }
}

function declaredOtherwise({ headers }: FastifyRequest): string | undefined {
  const type = headers['content-type']
  if (type !== 'application/json' && type !== undefined) {
    const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(type)?.[1]
    if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
      return `JSON is sent as UTF-8, not as ${charset.slice(0, 40)}`
    }
  }
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return 'the body must be sent without Content-Encoding'
  }
  return undefined
}

/** curl and others send a form's content type along with no body at all. */
function refuseOtherTypes(request: FastifyRequest, payload: NodeJS.ReadableStream, done: Done): void {
  const empty = request.headers['content-length'] === '0'
  if (empty && request.routeOptions.config.bodyOptional === true) {
    done(null, undefined)
    return
  }
  payload.resume()
  done(
    new RequestProblem('unsupported_media_type', 'the body must be sent with Content-Type: application/json'),
  )
}
