import type { FastifyInstance } from 'fastify'
import { type Access, accessRule } from './admission/access.ts'
import { type AdmissionOptions, admitting } from './admission/admission.ts'
import { demandBody, noteResponse } from './bodies/json-body.ts'
import type { Forwarding } from './forwarding.ts'
import { type ClientLimiter, shedding } from './limits/limiter.ts'
import { counting, type RequestCounts } from './observability/answered-requests.ts'
import { type AuditRules, auditing } from './observability/audit.ts'
import { checkingParameters } from './requests/parameters.ts'
import { inTurns, type ReadInTurn } from './requests/read-scheduler.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
    /** The route accepts an empty body, whatever its content type. */
    bodyOptional?: boolean
    /** Every node serves the route itself. */
    servedByAll?: boolean
    /** The response has no end, so the route is not one read. */
    isStream?: boolean
  }
}

interface RouteRules {
  readonly admission: AdmissionOptions
  readonly limiter: ClientLimiter
  readonly requests: RequestCounts
  readonly auditRules: AuditRules
  readonly readInTurn: ReadInTurn
  /** Null: this node is the only one. */
  readonly forwarding: Forwarding | null
}

/** What runs before and after the handler of a route, in this order. Each must declare who may call it. */
export function hookRoutes(app: FastifyInstance, rules: RouteRules): void {
  const { admission, limiter, requests, auditRules, readInTurn, forwarding } = rules
  app.addHook('onRoute', (route) => {
    const { access, bodyOptional: isBodyOptional = false } = route.config ?? {}
    if (access === undefined)
      throw new Error(`the route ${route.method} ${route.url} does not declare its access`)
    const rule = accessRule(access)
    const takesBody = route.method === 'POST' || route.method === 'PATCH'
    Object.assign(route, {
      onRequest: [
        // Requests that admission refuses are counted, too.
        counting(requests.ofRoute(route)),
        ...(rule === undefined ? [] : [admitting(rule, admission), shedding(rule, limiter)]),
        ...(access === 'probe' ? [] : [checkingParameters(route)]),
      ],
      preParsing: takesBody ? [noteResponse] : [],
      preValidation: [
        ...(forwarding?.forwards(route) === true ? [forwarding.serveOrForward] : []),
        ...(takesBody && !isBodyOptional ? [demandBody] : []),
      ],
      handler: inTurns(route, rule, readInTurn),
      onSend: rule === undefined || rule.roles === null ? [] : [auditing(rule, auditRules)],
    })
  })
}
