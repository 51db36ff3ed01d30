import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { crossSiteFault } from './cross-site.ts'
import type { HostRule } from './host-rule.ts'
import { sendProblem } from './problems.ts'
import type { Role, Tokens } from './tokens.ts'

/**
 * What a route asks of a caller: `probe` nothing at all, `open` no token, `anyone` whatever token there is, `view` one
 * that may look; the others change something and ask for the role of that name.
 */
export type Access = 'probe' | 'open' | 'anyone' | 'view' | 'producer' | 'worker' | 'operator'

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
  anyone: ['producer', 'worker', 'operator', 'viewer'],
  view: ['operator', 'viewer'],
  producer: ['producer'],
  worker: ['worker'],
  operator: ['operator'],
}

const changing: ReadonlySet<Access> = new Set(['producer', 'worker', 'operator'])

type OnRequest = (request: FastifyRequest, reply: FastifyReply, done: () => void) => void

/** Sees to it that every route says who may call it, and puts the check in front of everything else. */
export function admitCallers(app: FastifyInstance, options: AdmissionOptions): void {
  app.addHook('onRoute', (route: RouteOptions) => {
    const access = route.config?.access
    if (access === undefined)
      throw new Error(`the route ${route.method} ${route.url} does not say who may call it`)
    if (access === 'probe') return
    const others = route.onRequest === undefined ? [] : [route.onRequest].flat()
    route.onRequest = [admission(access, options), ...others]
  })
}

/** One function per route, decided once: requests pay only for the rules that apply to them. */
function admission(access: Exclude<Access, 'probe'>, { hosts, tokens }: AdmissionOptions): OnRequest {
  const allowed = admitted[access]
  const isChanging = changing.has(access)
  return (request, reply, done) => {
    const { headers } = request.raw
    if (tokens === null && !isHostAdmitted(request, reply, hosts)) return
    if (isChanging) {
      const fault = crossSiteFault(headers, hosts)
      if (fault !== undefined) {
        sendProblem(reply, 'cross_site_refused', fault)
        return
      }
    }
    if (tokens !== null && allowed !== null) {
      if (!isTokenAdmitted(headers.authorization, reply, tokens, allowed)) return
    }
    done()
  }
}

/** Also for paths that no route has: a foreign page learns nothing about what is here. */
export function isHostAdmitted(request: FastifyRequest, reply: FastifyReply, hosts: HostRule): boolean {
  const { headers, httpVersionMinor } = request.raw
  const { host } = headers
  if (host === undefined) {
    // Left out by old clients only; HTTP/1.1 demands it.
    if (httpVersionMinor === 0) return true
    sendProblem(reply, 'bad_request', 'a request of HTTP/1.1 needs a Host header')
    return false
  }
  if (hosts.admits(host)) return true
  sendProblem(
    reply,
    'host_refused',
    'the Host header names neither this machine nor an allowed host; an operator can add it to BATON_ALLOWED_HOSTS',
  )
  return false
}

const challenge = { 'www-authenticate': 'Bearer realm="Baton"' }

function isTokenAdmitted(
  authorization: string | undefined,
  reply: FastifyReply,
  tokens: Tokens,
  allowed: readonly Role[],
): boolean {
  const token = authorization === undefined ? undefined : /^Bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1]
  if (token === undefined) {
    sendProblem(reply, 'token_missing', 'send a token of this service: Authorization: Bearer <token>', {
      headers: challenge,
    })
    return false
  }
  const roles = tokens.rolesOf(token)
  if (roles === undefined) {
    sendProblem(reply, 'token_unknown', 'the token is not one of this service', {
      headers: { 'www-authenticate': 'Bearer realm="Baton", error="invalid_token"' },
    })
    return false
  }
  if (allowed.some((role) => roles.has(role))) return true
  sendProblem(reply, 'token_refused', `the token's roles do not cover this; it takes ${allowed.join(' or ')}`)
  return false
}
