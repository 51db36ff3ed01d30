import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Admission } from './admission.ts'
import type { Refuse } from './error-answers.ts'
import { parsedBody } from './json-body.ts'
import { endWithProblem } from './problems.ts'
import { LEASE_LIMIT_BYTES, type Service } from './service.ts'

/** Serves a request to its end, or throws before anything of the answer was sent. `body` is parsed JSON. */
export type Serve = (request: IncomingMessage, response: ServerResponse, body: unknown) => Promise<void>

interface ExpressRoute {
  readonly method: 'GET' | 'POST'
  readonly serve: Serve
}

/**
 * The way past Fastify for the two requests that workers make all day. Fastify's request and reply, its hooks and its
 * reading of bodies cost an eighth of the main thread's time for a pull and settle, and add nothing to them.
 *
 * Only requests that are plain in every respect take this way: everything else, and whatever is refused at the door,
 * goes to Fastify untouched, where the same function serves the same route.
 */
export class ExpressLane {
  readonly #admission: Admission
  readonly #refuse: Refuse
  readonly #handOff: Service['handOff']
  readonly #routes = new Map<string | undefined, ExpressRoute>()

  constructor(admission: Admission, refuse: Refuse, { handOff }: Pick<Service, 'handOff'>) {
    this.#admission = admission
    this.#refuse = refuse
    this.#handOff = handOff
  }

  open(method: ExpressRoute['method'], url: string, serve: Serve): void {
    this.#routes.set(url, { method, serve })
  }

  /** `others` serves what does not take this way. */
  beside(others: RequestListener): RequestListener {
    return (request, response) => {
      const route = this.#routes.get(request.url)
      if (route === undefined || route.method !== request.method || this.#admission(request) !== undefined) {
        others(request, response)
      } else if (route.method === 'GET') void this.#run(route.serve, request, response, undefined)
      else {
        // When the parser is through with what the socket brought, the body has usually come with the head.
        process.nextTick(() => {
          if (isWholeAndPlain(request)) void this.#run(route.serve, request, response, request.read())
          else others(request, response)
        })
      }
    }
  }

  async #run(
    serve: Serve,
    request: IncomingMessage,
    response: ServerResponse,
    bytes: Buffer | undefined,
  ): Promise<void> {
    try {
      await serve(request, response, bytes === undefined ? undefined : parsedBody(bytes))
    } catch (error) {
      endWithProblem(response, this.#refuse(error, request), this.#handOff.isDraining)
    }
  }
}

/** The whole body is here, and it is what it should be: bytes of JSON, neither encoded nor declared otherwise. */
function isWholeAndPlain({ headers, readableLength }: IncomingMessage): boolean {
  return (
    readableLength > 0 &&
    readableLength <= LEASE_LIMIT_BYTES &&
    headers['content-type'] === 'application/json' &&
    Number(headers['content-length']) === readableLength &&
    headers['content-encoding'] === undefined &&
    headers['transfer-encoding'] === undefined
  )
}
