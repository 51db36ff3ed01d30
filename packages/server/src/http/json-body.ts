import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { RequestProblem } from './problems.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route understands an empty body, whatever it is declared as. */
    bodyOptional?: boolean
  }
}

type Done = (error: Error | null, body?: unknown) => void

/**
 * Bodies are JSON in UTF-8 and nothing else. Bytes that are not UTF-8 are refused and not replaced: what is stored
 * is what was sent. Fastify's own parser would replace them, and look for `__proto__`, which is safe here because
 * bodies are only ever read field by field.
 */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, readJson)
  app.addContentTypeParser('*', refuseOtherTypes)
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
  if (body.length === 0) {
    if (request.routeOptions.config.bodyOptional === true) return undefined
    throw new RequestProblem('body_not_json', 'the body is empty')
  }
  if (!isUtf8(body)) throw new RequestProblem('body_not_json', 'the body is not valid UTF-8')
  try {
    return parse(body.toString('utf8'))
  } catch (error) {
    throw new RequestProblem('body_not_json', `the body is not JSON: ${reasonOf(error)}`)
  }
}

const BYTE_ORDER_MARK = '\ufeff'

function parse(text: string): unknown {
  return JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text)
}

/** V8 quotes the body in its message; a place is enough, and a body is not echoed. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : ''
  const place = /at position \d+/.exec(text)?.[0]
  if (place !== undefined) return `unexpected character ${place}`
  return text.startsWith('Unexpected end') ? 'it ends too early' : 'it breaks off or holds something else'
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
