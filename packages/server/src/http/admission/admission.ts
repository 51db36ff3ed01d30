import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { ProblemCode } from '@baton/protocol'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Problem, sendProblem } from '../answers/problems.ts'
import { admittedRequestOf } from '../forwarded-client.ts'
import { type Access, type AccessRule, accessRule } from './access.ts'
import { browserFault, crossSiteFault, type HostRule } from './browser-defence.ts'
import { userOf } from './proxy-users.ts'
import { bearerToken, type Role, roles, UNKNOWN_TOKEN } from './tokens.ts'
import type { LiveTokens } from './tokens-file.ts'

export interface AdmissionOptions {
  readonly hosts: HostRule
  /** Null: no tokens are required, and the Host header is checked instead. */
  readonly tokens: LiveTokens | null
}

/** The problems with which admission can refuse a request, for the API document. */
export function admissionProblems(access: Access): readonly ProblemCode[] {
  const rule = accessRule(access)
  if (rule === undefined) return []
  const { roles: allowed, effect: does, tasks } = rule
  const found: ProblemCode[] = ['host_refused', 'overloaded', 'rate_limited']
  if (does !== 'read') found.push('cross_site_refused')
  if (allowed === null) return found
  found.push('token_missing', 'token_unknown')
  if (tasks !== 'covered') found.push('token_limited')
  // Every token has at least one role. If all roles are allowed, no token is refused for its roles.
  if (roles.some((role) => !allowed.includes(role))) found.push('token_refused')
  return found
}

/** Returns why a request is refused; undefined when it is admitted. */
export type Admission = (request: RequestHead) => Problem | undefined

type RequestHead = Pick<IncomingMessage, 'headers' | 'rawHeaders' | 'httpVersion'>

/** The check of one route, as a hook. */
export function admitting(rule: AccessRule, options: AdmissionOptions) {
  const refusalOf = admission(rule, options)
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const refusal = refusalOf(request.raw)
    if (refusal === undefined) done()
    else sendProblem(reply, refusal)
  }
}

/** Builds the check of one route, so that each request only runs the rules that apply to it. */
export function admission(rule: AccessRule, { hosts, tokens }: AdmissionOptions): Admission {
  const { roles: allowed } = rule
  const needsAll = rule.tasks === 'all'
  const isChanging = rule.effect !== 'read'
  /** Without a token, and for a user whose browser sends the proxy's cookie, a page of another site needs nothing. */
  const isSentUnasked = (headers: IncomingHttpHeaders) => tokens === null || userOf(headers) !== undefined
  return (request) => {
    if (tokens === null) {
      const refusal = hostRefusal(request, hosts)
      if (refusal !== undefined) return refusal
    }
    const { headers } = request
    if (isChanging) {
      const fault =
        crossSiteFault(headers, hosts) ?? (isSentUnasked(headers) ? strangerFault(headers, hosts) : undefined)
      if (fault !== undefined) return { code: 'cross_site_refused', detail: fault }
    }
    if (tokens === null || allowed === null) return undefined
    return tokenRefusal(headers, tokens, allowed, needsAll)
  }
}

/** To loopback names, which are secure for browsers, they send Sec-Fetch headers instead. */
function strangerFault(headers: IncomingHttpHeaders, hosts: HostRule): string | undefined {
  const { host } = headers
  if (host !== undefined && hosts.isLoopback(host)) return undefined
  return browserFault(headers)
}

const HOST_REFUSED =
  'the Host header is neither a loopback name nor an allowed host; an operator can add the host to BATON_ALLOWED_HOSTS'

/** Also used for unknown paths, so that a page of another site learns nothing about the service. */
export function hostRefusal(
  { headers, rawHeaders, httpVersion }: RequestHead,
  hosts: HostRule,
): Problem | undefined {
  const { host } = headers
  if (host === undefined) {
    // Only HTTP/1.0 clients may omit it. Node's parser also accepts HTTP/2.0, which no client sends here.
    // Followers forward in HTTP/1.1, after they have checked this.
    if (httpVersion === '1.0' || admittedRequestOf(headers) !== undefined) return undefined
    return { code: 'bad_request', detail: 'the request must have a Host header' }
  }
  // Node uses the first one; a proxy in between may have used the other.
  const isHost = (text: string, at: number) => at % 2 === 0 && text.toLowerCase() === 'host'
  if (rawHeaders.filter(isHost).length > 1)
    return { code: 'bad_request', detail: 'the Host header must not be repeated' }
  if (hosts.admits(host)) return undefined
  return { code: 'host_refused', detail: HOST_REFUSED }
}

function tokenRefusal(
  headers: IncomingHttpHeaders,
  tokens: LiveTokens,
  allowed: readonly Role[],
  needsAll: boolean,
): Problem | undefined {
  const token = tokens.find(headers)
  const who = userOf(headers) === undefined ? 'token' : 'group of the user'
  if (token === undefined) {
    if (userOf(headers) !== undefined)
      return { code: 'token_refused', detail: 'the user has no group to which the tokens file gives a role' }
    if (bearerToken(headers.authorization) !== undefined) return UNKNOWN_TOKEN
    return {
      code: 'token_missing',
      detail: 'send a token of this service: Authorization: Bearer <token>',
      options: { headers: { 'www-authenticate': 'Bearer realm="Baton"' } },
    }
  }
  if (!allowed.some((role) => token.roles.has(role))) {
    const detail = `the roles of the ${who} do not allow this; it requires the role ${allowed.join(' or ')}`
    return { code: 'token_refused', detail }
  }
  if (needsAll && token.tasks !== null) {
    const detail = `the ${who} is limited to some tasks, and this request concerns all tasks`
    return { code: 'token_limited', detail }
  }
  return undefined
}
