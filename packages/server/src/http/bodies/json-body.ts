import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  preParsingHookHandler,
} from 'fastify'
import { RequestProblem, TYPE_NOT_JSON } from '../answers/problems.ts'
import type { TimeSlicer } from '../requests/time-slicer.ts'
import { type ArrivalRules, type ArrivedBody, ArrivingBody } from './arriving-body.ts'
import { JsonArrayText } from './json-array.ts'
import { parseJsonBytes } from './json-bytes.ts'
import type { ShapeLimits } from './json-shape.ts'

type Done = (error: Error | null, body?: unknown) => void

/** How bodies are received. Their limits depend on the route. */
interface BodyRules {
  readonly limiter: ArrivalRules['limiter']
  readonly slicer: TimeSlicer
  readonly callBackShape: ShapeLimits
  /** Returns what the route gets instead of the parsed body, for a request that another node may serve. */
  keepUnlessServed(request: FastifyRequest, body: ArrivedBody): unknown
}

/** All bodies but call-backs. 10,000 settlements with all fields have 80,000 values. */
export const OTHER_SHAPE: ShapeLimits = {
  elements: 100_000,
  values: 100_000,
  elementBytes: Number.POSITIVE_INFINITY,
}

const responses = new WeakMap<IncomingMessage, ServerResponse>()

/** Only JSON in UTF-8. Fastify's parser would replace invalid bytes. */
export function acceptJsonBodies(app: FastifyInstance, rules: BodyRules): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', (request: FastifyRequest, payload: Readable, done: Done) => {
    const fault = declaredOtherwise(request)
    if (fault !== undefined) {
      payload.resume()
      done(new RequestProblem('unsupported_media_type', fault))
      return
    }
    const arrived = (body: ArrivedBody) => {
      try {
        done(null, rules.keepUnlessServed(request, body) ?? bodyOf(request, body))
      } catch (error) {
        done(error as Error)
      }
    }
    const { raw, routeOptions } = request
    const isFromProducer = isCallBack(routeOptions.config)
    const arrival = {
      limitBytes: routeOptions.bodyLimit,
      shape: isFromProducer ? rules.callBackShape : OTHER_SHAPE,
      isCallBack: isFromProducer,
      isCompressed: raw.headers['content-encoding']?.toLowerCase() === 'gzip',
      limiter: rules.limiter,
      slicer: rules.slicer,
    }
    new ArrivingBody(raw, responses.get(raw), payload, arrival, arrived, done).read()
  })
  app.addContentTypeParser('*', refuseOtherTypes)
}

/** Before a body is parsed. Parsers do not get the response. */
export const noteResponse: preParsingHookHandler = ({ raw: request }, { raw: response }, _payload, done) => {
  responses.set(request, response)
  done(null)
}

/** Only call-backs can be large. A large one is passed to its route as a `JsonArrayText`. */
const isCallBack = ({ access }: FastifyContextConfig) => access === 'call-back'

/** Without a body and a content type, no parser ran. Answers as for an empty body. */
export function demandBody(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  if (request.body === undefined) parseJsonBytes(Buffer.alloc(0))
  done()
}

export function bodyOf({ routeOptions: { config } }: FastifyRequest, { bytes, cuts }: ArrivedBody): unknown {
  if (bytes.length === 0 && config.bodyOptional === true) return undefined
  return cuts.length > 0 && isCallBack(config) ? new JsonArrayText(bytes, cuts) : parseJsonBytes(bytes)
}

function declaredOtherwise({ headers }: FastifyRequest): string | undefined {
  const type = headers['content-type']
  if (type !== 'application/json' && type !== undefined) {
    const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(type)?.[1]
    if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
      return `JSON must be encoded as UTF-8, not as ${charset.slice(0, 40)}`
    }
  }
  const encoding = headers['content-encoding']?.toLowerCase()
  if (encoding !== undefined && encoding !== 'identity' && encoding !== 'gzip') {
    return 'the body must be sent with Content-Encoding: gzip or without Content-Encoding'
  }
  return undefined
}

/** Clients such as curl send a form's content type with an empty body. */
function refuseOtherTypes(request: FastifyRequest, payload: NodeJS.ReadableStream, done: Done): void {
  const empty = request.headers['content-length'] === '0'
  if (empty && request.routeOptions.config.bodyOptional === true) {
    done(null, undefined)
    return
  }
  payload.resume()
  done(new RequestProblem('unsupported_media_type', TYPE_NOT_JSON))
}

/** Sends 100 Continue within the largest limit. Other expectations are ignored: Node would refuse them. */
export function answerExpectHeader(app: FastifyInstance, largestBodyBytes: number): void {
  app.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    const announced = Number(request.headers['content-length'] ?? 0)
    if (announced <= largestBodyBytes) response.writeContinue()
    app.routing(request, response)
  })
  app.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    app.routing(request, response)
  })
}
