import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { CheckFailure } from '@baton/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { brokenContract, RequestProblem, TYPE_NOT_JSON, tooLarge } from '../answers/problems.ts'
import type { HoldBody } from '../budget/received-bytes.ts'
import type { BulkWork } from '../requests/bulk-work.ts'
import { type ArrivalRules, ArrivingBody } from './arriving-body.ts'
import {
  MAX_DEPTH,
  NotJson,
  parseJsonBytes,
  type ShapeFault,
  type ShapeLimits,
  UnparsedBody,
} from './json-bytes.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route accepts an empty body, whatever its content type. */
    bodyOptional?: boolean
    /** The route receives a body of `PARSED_ON_THREAD_BYTES` or more as an `UnparsedBody`. */
    parsesOnThread?: boolean
  }
}

/**
 * Bodies of at least this size are parsed on a separate thread, on routes that support it. Parsing them on
 * the event loop would delay all other requests (bench scenario call-back-stall). For smaller bodies, the
 * transfer costs more than it saves.
 */
export const PARSED_ON_THREAD_BYTES = 256 * 2 ** 10

type Done = (error: Error | null, body?: unknown) => void

/** How bodies are received. Their limits depend on the route. */
interface BodyRules {
  readonly hold: HoldBody
  readonly bulk: BulkWork
  readonly callBackShape: ShapeLimits
  /** Returns what the route gets instead of the parsed body, for a request that another node may serve. */
  arrived(request: FastifyRequest, chunks: readonly Buffer[]): unknown
  shapeMet(fault: ShapeFault, isCallBack: boolean): void
}

/**
 * Limits of all bodies except call-backs. 10,000 settlements with all fields have 70,000 values, and bodies
 * on the fast path are too small to exceed this.
 */
const OTHER_SHAPE: ShapeLimits = { elements: 150_000, values: 150_000 }

const responses = new WeakMap<IncomingMessage, ServerResponse>()

/**
 * Accepts only JSON in UTF-8. Fastify's parser would replace invalid bytes. It also rejects `__proto__`,
 * which is not needed here, because bodies are only read field by field.
 */
export function acceptJsonBodies(app: FastifyInstance, rules: BodyRules): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', (request: FastifyRequest, payload: Readable, done: Done) => {
    const fault = declaredOtherwise(request)
    if (fault !== undefined) {
      payload.resume()
      done(new RequestProblem('unsupported_media_type', fault))
      return
    }
    const arrived = (error: Error | null, chunks: readonly Buffer[] = []) => {
      if (error !== null) done(error)
      else readJson(request, chunks, rules, done)
    }
    const arrival = arrivalRules(request, rules)
    const { raw } = request
    new ArrivingBody(raw, responses.get(raw), payload, arrival, arrived).read(isCompressed(request))
  })
  app.addContentTypeParser('*', refuseOtherTypes)
  app.addHook('onRoute', (route: RouteOptions) => {
    if (route.method !== 'POST' && route.method !== 'PUT') return
    route.preParsing = ({ raw: request }, { raw: response }, _payload, done) => {
      responses.set(request, response)
      done(null)
    }
    if (route.config?.bodyOptional !== true) route.preValidation = demandBody
  })
}

function arrivalRules({ routeOptions }: FastifyRequest, rules: BodyRules): ArrivalRules {
  const { bodyLimit, config } = routeOptions
  const isCallBack = config.access === 'call-back'
  const shape = isCallBack ? rules.callBackShape : OTHER_SHAPE
  return {
    limitBytes: bodyLimit,
    shape,
    isUrgent: !isCallBack,
    hold: rules.hold,
    bulk: rules.bulk,
    tooLarge: () => tooLarge(bodyLimit, isCallBack),
    shapeFault: (fault) => {
      rules.shapeMet(fault, isCallBack)
      return brokenContract(
        'the body exceeds a structural limit and was rejected before parsing',
        shapeViolation(fault, shape),
      )
    },
  }
}

function shapeViolation(fault: ShapeFault, { elements, values }: ShapeLimits): CheckFailure {
  const most = (count: number) => count.toLocaleString('en-US')
  const detail = {
    elements: `the array has more than ${most(elements)} elements; send several arrays`,
    values: `the body has more than ${most(values)} values; send several arrays`,
    depth: `the body is nested more than ${MAX_DEPTH} levels deep`,
  }[fault]
  return { ok: false, violations: [{ pointer: '', detail }], total: 1 }
}

const NO_BYTES = Buffer.alloc(0)

/** Without a body and a content type, no parser ran. Answers as for an empty body. */
function demandBody(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  if (request.body === undefined) parsedBody(NO_BYTES)
  done()
}

function readJson(
  request: FastifyRequest,
  chunks: readonly Buffer[],
  { arrived }: BodyRules,
  done: Done,
): void {
  try {
    done(null, arrived(request, chunks) ?? bodyOf(request, chunks))
  } catch (error) {
    done(error as Error)
  }
}

/** Parses a body, as its route needs it. */
export function bodyOf({ routeOptions: { config } }: FastifyRequest, chunks: readonly Buffer[]): unknown {
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0)
  if (bytes === 0 && config.bodyOptional === true) return undefined
  if (bytes >= PARSED_ON_THREAD_BYTES && config.parsesOnThread === true) return new UnparsedBody(chunks)
  const [first = NO_BYTES] = chunks
  return parsedBody(chunks.length > 1 ? Buffer.concat(chunks, bytes) : first)
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
      return `JSON must be encoded as UTF-8, not as ${charset.slice(0, 40)}`
    }
  }
  const encoding = headers['content-encoding']?.toLowerCase()
  if (encoding !== undefined && encoding !== 'identity' && encoding !== 'gzip') {
    return 'the body must be sent with Content-Encoding: gzip or without Content-Encoding'
  }
  return undefined
}

function isCompressed({ headers }: FastifyRequest): boolean {
  return headers['content-encoding']?.toLowerCase() === 'gzip'
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

/**
 * Sends 100 Continue only if the announced body is within the largest limit. Other expectations are ignored,
 * as HTTP allows; Node would refuse them without an explanation.
 */
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
