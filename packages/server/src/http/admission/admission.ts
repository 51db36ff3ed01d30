import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { ProblemCode } from '@baton/protocol'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { sendProblem, type UnwrittenProblem } from '../answers/problems.ts'
import { bearerToken } from '../requests/bearer-token.ts'
import { browserFault } from './browser-signs.ts'
import { crossSiteFault, isOwnAddress } from './cross-site.ts'
import type { HostRule } from './host-rule.ts'
import { type Role, roles, type Tokens } from './tokens.ts'

/**
 * What a route asks of a caller: `probe` nothing at all, `open` no token, `anyone` whatever token there is, `view` one
 * that may look; the others change something and ask for the role of that name.
 */
export type Access =
  | 'probe'
  | 'open'
  | 'anyone'
  | 'view'
  | 'producer'
  | 'worker'
  | 'operator'
  /** Whoever calls back, or acts on, the task. */
  | 'settings'

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
  }
}

export interface AdmissionOptions {
  readonly hosts: HostRule
  /** Null: nobody is asked for a token, and the Host header is looked at instead. */
  readonly tokens: Tokens | null
}

/** Null: not even a token is asked for. */
const admitted: Record<Exclude<Access, 'probe'>, readonly Role[] | null> = {
  open: null,
  anyone: roles,
  view: ['operator', 'viewer'],
  producer: ['producer'],
  worker: ['worker'],
  operator: ['operator'],
  settings: ['producer', 'operator'],
}

const changing: ReadonlySet<Access> = new Set(['producer', 'worker', 'operator', 'settings'])

export const hasEffect = (access: Access): boolean => changing.has(access)

/** What a caller of such a route can be refused with, for those who describe routes. */
export function admissionProblems(access: Access): readonly ProblemCode[] {
  if (access === 'probe') return []
  const found: ProblemCode[] = ['host_refused']
  if (changing.has(access)) found.push('cross_site_refused')
  const allowed = admitted[access]
  if (allowed === null) return found
  found.push('token_missing', 'token_unknown')
  // A token has at least one role: where any will do, none is refused.
  if (roles.some((role) => !allowed.includes(role))) found.push('token_refused')
  return found
}

/** Why a request must not be served; undefined when it may be. */
export type Admission = (request: AskedWith) => UnwrittenProblem | undefined

/** All of a request that decides about it. */
type AskedWith = Pick<IncomingMessage, 'headers' | 'rawHeaders' | 'httpVersion'>

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
  const allowed = admitted[access]
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
    return tokenRefusal(headers.authorization, tokens, allowed)
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
  { headers: { host }, rawHeaders, httpVersion }: AskedWith,
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

function tokenRefusal(
  authorization: string | undefined,
  tokens: Tokens,
  allowed: readonly Role[],
): UnwrittenProblem | undefined {
  const token = bearerToken(authorization)
  if (token === undefined) {
    return {
      code: 'token_missing',
      detail: 'send a token of this service: Authorization: Bearer <token>',
      options: { headers: { 'www-authenticate': 'Bearer realm="Baton"' } },
    }
  }
  const roles = tokens.rolesOf(token)
  if (roles === undefined) {
    return {
      code: 'token_unknown',
      detail: 'the token is not one of this service',
      options: { headers: { 'www-authenticate': 'Bearer realm="Baton", error="invalid_token"' } },
    }
  }
  if (allowed.some((role) => roles.has(role))) return undefined
  const detail = `the token's roles do not cover this; it takes ${allowed.join(' or ')}`
  return { code: 'token_refused', detail }
}
