import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { ProblemCode } from '@baton/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { RequestProblem, sendProblem, type UnwrittenProblem } from '../answers/problems.ts'
import { bearerToken } from '../requests/callers.ts'
import { browserFault, crossSiteFault, isOwnAddress } from './cross-site.ts'
import type { HostRule } from './host-rule.ts'
import type { LiveTokens } from './live-tokens.ts'
import { type Role, roles } from './tokens.ts'

/**
 * What a route asks of a caller: `probe` nothing at all, `open` no token, `anyone` whatever token there is. `view` is for
 * those who may look, and shows each what its token covers; `overview` shows everything, so a token that is limited to some
 * tasks is refused; `task` looks at one task, as its producer may, too; `audit` is for operators. The others change
 * something: `subscriptions` is for operators whose token is not limited, `seal` is for operators and the producers of the task, and the rest for the role of that name.
 * something: `seal` is for operators and the producers of the task, `fleet` for operators of all tasks, and the rest for
 * the role of that name.
 */
export type Access = keyof typeof admitted | 'probe'

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
  }
}

export interface AdmissionOptions {
  readonly hosts: HostRule
  /** Null: nobody is asked for a token, and the Host header is looked at instead. */
  readonly tokens: LiveTokens | null
}

/** Null: not even a token is asked for. */
const admitted = {
  open: null,
  anyone: roles,
  view: ['operator', 'viewer'],
  overview: ['operator', 'viewer'],
  task: ['operator', 'viewer', 'producer'],
  audit: ['operator'],
  producer: ['producer'],
  worker: ['worker'],
  operator: ['operator'],
  subscriptions: ['operator'],
  fleet: ['operator'],
  seal: ['operator', 'producer'],
  settings: ['operator', 'producer'],
} as const satisfies Record<string, readonly Role[] | null>

/** Roles by access, for those who describe routes; null where no token is asked for. */
export const rolesFor = (access: Access): readonly Role[] | null =>
  access === 'probe' ? null : admitted[access]

const changing: ReadonlySet<Access> = new Set([
  'producer',
  'worker',
  'operator',
  'subscriptions',
  'fleet',
  'seal',
  'settings',
])
/** What a token with a limit to tasks or tables can be refused on. */
const limited: ReadonlySet<Access> = new Set([
  'overview',
  'task',
  'audit',
  'producer',
  'operator',
  'subscriptions',
  'fleet',
  'seal',
  'settings',
])
/** Shows or does what no limit to tasks can narrow. */
const unlimitedOnly: ReadonlySet<Access> = new Set(['overview', 'audit', 'subscriptions', 'fleet'])

export const hasEffect = (access: Access): boolean => changing.has(access)

/** What a caller of such a route can be refused with, for those who describe routes. */
export function admissionProblems(access: Access): readonly ProblemCode[] {
  if (access === 'probe') return []
  const found: ProblemCode[] = ['host_refused', 'overloaded', 'rate_limited']
  if (changing.has(access)) found.push('cross_site_refused')
  const allowed = rolesFor(access)
  if (allowed === null) return found
  found.push('token_missing', 'token_unknown')
  if (limited.has(access)) found.push('token_limited')
  // A token has at least one role: where any will do, none is refused.
  if (roles.some((role) => !allowed.includes(role))) found.push('token_refused')
  return found
}

/** Why a request must not be served; undefined when it may be. */
export type Admission = (request: RequestHead) => UnwrittenProblem | undefined

/** All of a request that decides about it. */
type RequestHead = Pick<IncomingMessage, 'headers' | 'rawHeaders' | 'httpVersion'>

/** Sees to it that every route says who may call it, and puts the check in front of everything else. */
export function admitCallers(app: FastifyInstance, options: AdmissionOptions): void {
  app.addHook('onRoute', (route: RouteOptions) => {
    const access = route.config?.access
    if (access === undefined)
      throw new Error(`the route ${route.method} ${route.url} does not say who may call it`)
    if (access === 'probe') return
    const others = route.onRequest === undefined ? [] : [route.onRequest].flat()
    route.onRequest = [refusing(admission(access, options)), ...others]
  })
}

function refusing(refusalOf: Admission) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const refusal = refusalOf(request.raw)
    if (refusal === undefined) done()
    else sendProblem(reply, refusal)
  }
}

/** One function per route, decided once: requests pay only for the rules that apply to them. */
export function admission(access: Exclude<Access, 'probe'>, { hosts, tokens }: AdmissionOptions): Admission {
  const allowed = rolesFor(access)
  const needsAll = unlimitedOnly.has(access)
  const isChanging = changing.has(access)
  return (request) => {
    if (tokens === null) {
      const refusal = hostRefusal(request, hosts)
      if (refusal !== undefined) return refusal
    }
    const { headers } = request
    if (isChanging) {
      const fault =
        crossSiteFault(headers, hosts) ?? (tokens === null ? strangerFault(headers, hosts) : undefined)
      if (fault !== undefined) return { code: 'cross_site_refused', detail: fault }
    }
    if (tokens === null || allowed === null) return undefined
    return tokenRefusal(headers.authorization, tokens, allowed, needsAll)
  }
}

/** Loopback names are trustworthy to browsers: there they say where a request comes from. */
function strangerFault(headers: IncomingHttpHeaders, hosts: HostRule): string | undefined {
  const { host } = headers
  if (host !== undefined && hosts.isLoopback(host)) return undefined
  return browserFault(headers, (address) => isOwnAddress(address, host, hosts))
}

export const HOST_REFUSED =
  'the Host header names neither this machine nor an allowed host; an operator can add it to BATON_ALLOWED_HOSTS'

/** Also for paths that no route has: a foreign page learns nothing about what is here. */
export function hostRefusal(
  { headers: { host }, rawHeaders, httpVersion }: RequestHead,
  hosts: HostRule,
): UnwrittenProblem | undefined {
  if (host === undefined) {
    // Left out by old clients only; HTTP/1.1 demands it. Node's parser also takes HTTP/2.0, which no client sends here.
    if (httpVersion === '1.0') return undefined
    return { code: 'bad_request', detail: 'the request needs a Host header' }
  }
  // Node takes the first. Whoever stands in between may have gone by the other.
  const isHost = (text: string, at: number) => at % 2 === 0 && text.toLowerCase() === 'host'
  if (rawHeaders.filter(isHost).length > 1)
    return { code: 'bad_request', detail: 'the Host header must be given once' }
  if (hosts.admits(host)) return undefined
  return { code: 'host_refused', detail: HOST_REFUSED }
}

export const UNKNOWN_TOKEN: UnwrittenProblem = {
  code: 'token_unknown',
  detail: 'the token is not one of this service',
  options: { headers: { 'www-authenticate': 'Bearer realm="Baton", error="invalid_token"' } },
}

/** For a request whose token was revoked while it waited. */
export function revoked(): RequestProblem {
  const { code, detail, options = {} } = UNKNOWN_TOKEN
  return new RequestProblem(code, detail, options)
}

function tokenRefusal(
  authorization: string | undefined,
  tokens: LiveTokens,
  allowed: readonly Role[],
  needsAll: boolean,
): UnwrittenProblem | undefined {
  const token = tokens.ofHeader(authorization)
  if (token === undefined) {
    if (bearerToken(authorization) !== undefined) return UNKNOWN_TOKEN
    return {
      code: 'token_missing',
      detail: 'send a token of this service: Authorization: Bearer <token>',
      options: { headers: { 'www-authenticate': 'Bearer realm="Baton"' } },
    }
  }
  if (!allowed.some((role) => token.roles.has(role))) {
    const detail = `the token's roles do not cover this; it takes ${allowed.join(' or ')}`
    return { code: 'token_refused', detail }
  }
  if (needsAll && token.tasks !== null) {
    const detail = 'the token is limited to some tasks, and this is about all of them'
    return { code: 'token_limited', detail }
  }
  return undefined
}
