import { setTimeout as sleep } from 'node:timers/promises'
import { type ErrorCode, errorCodes, PROBLEM_MEDIA_TYPE, type Problem } from '@baton/protocol'
import type { Chance } from './chance.ts'
import type { FleetNode } from './fleet.ts'
import { type RequestKind, retryLater } from './request-kinds.ts'
import type { Findings } from './scene.ts'

/** Much longer than any disturbance keeps a node from answering. */
const ANSWER_MILLIS = 60_000
const PATIENCE_MILLIS = 180_000

export interface Request {
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** The client disconnects after this many milliseconds. */
  readonly hangUpAfter?: number | undefined
}

export interface Exchange {
  readonly node: string
  /**
   * When it was first sent, by the clock of this machine, which is also the database's. It may have taken
   * effect from then on.
   */
  readonly sentAt: number
  /** When the attempt that was answered was sent: the answer is not older. */
  readonly lastSentAt: number
  readonly receivedAt: number
  /** An earlier attempt was not answered, and may still have taken effect. */
  readonly wasRepeated?: boolean
}

export type Answer<Body> =
  | (Exchange & { readonly body: Body; readonly problem?: undefined })
  | (Exchange & { readonly body?: undefined; readonly problem: ErrorCode })

/** Sends requests to nodes and checks every answer against the protocol. */
export class CheckedClient {
  answers = 0
  unanswered = 0
  /** After the run, requests are no longer retried. */
  isClosed = false
  readonly #nodes: readonly FleetNode[]
  readonly #findings: Findings

  constructor(nodes: readonly FleetNode[], findings: Findings) {
    this.#nodes = nodes
    this.#findings = findings
  }

  anyNode(chance: Chance): FleetNode {
    return chance.pick(this.#nodes.filter(({ isAway }) => !isAway))
  }

  /**
   * Returns undefined without an answer, or with one that only says to retry later: the request may have
   * taken effect.
   */
  async send<Body>(
    node: FleetNode,
    kind: RequestKind<Body>,
    request: Request,
  ): Promise<Answer<Body> | undefined> {
    const { path, headers, body, hangUpAfter } = request
    const sentAt = Date.now()
    let response: Response
    let text: string
    try {
      response = await fetch(node.url + path, {
        method: kind.method,
        headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(hangUpAfter ?? ANSWER_MILLIS),
      })
      text = await response.text()
    } catch {
      this.unanswered += 1
      return undefined
    }
    this.answers += 1
    const exchange = { node: node.name, sentAt, lastSentAt: sentAt, receivedAt: Date.now() }
    return this.#read(kind, `${kind.method} ${path} on ${node.name}`, response, text, exchange)
  }

  /** Sends the request to one node after the other until one has answered. */
  async sendUntilAnswered<Body>(
    kind: RequestKind<Body>,
    request: Request,
    chance: Chance,
    first = this.anyNode(chance),
  ): Promise<Answer<Body>> {
    const startedAt = Date.now()
    let wasRepeated = false
    for (let node = first; ; node = this.anyNode(chance)) {
      const answer = await this.send(node, kind, request)
      if (answer !== undefined) return { ...answer, sentAt: startedAt, wasRepeated }
      wasRepeated = true
      const isPatient = Date.now() - startedAt < PATIENCE_MILLIS
      if (this.isClosed || this.#findings.areEnough || !isPatient)
        throw new Error(`${kind.method} ${request.path} is not answered`)
      await sleep(chance.between(10, 80))
    }
  }

  /** For requests that are never answered with a problem. */
  async sendUntilAccepted<Body>(kind: RequestKind<Body>, request: Request, chance: Chance, node?: FleetNode) {
    const answer = await this.sendUntilAnswered(kind, request, chance, node)
    if (answer.problem !== undefined) throw new Error(`${request.path} was answered ${answer.problem}`)
    return answer
  }

  #read<Body>(
    kind: RequestKind<Body>,
    asked: string,
    response: Response,
    text: string,
    exchange: Exchange,
  ): Answer<Body> | undefined {
    const body = parsed(text)
    if (response.status === 200) {
      const fault = kind.fault(body)
      if (fault === undefined) return { ...exchange, body: body as Body }
      this.#findings.add(`${asked} has an answer that is not of the protocol: ${fault}`)
      return undefined
    }
    const problem = body as Problem | undefined
    const code = problem?.code as ErrorCode
    const isProblem =
      response.headers.get('content-type')?.startsWith(PROBLEM_MEDIA_TYPE) === true &&
      errorCodes[code]?.status === response.status
    if (isProblem && retryLater.includes(code)) return undefined
    if (isProblem && kind.problems.includes(code)) return { ...exchange, problem: code }
    this.#findings.add(`${asked} was answered ${response.status}: ${text.slice(0, 500)}`)
    return undefined
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
