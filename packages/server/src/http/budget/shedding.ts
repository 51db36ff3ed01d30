import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { accessRule } from '../admission/access.ts'
import type { AdmissionBudget } from './budget.ts'

/** Refuses requests, after admission, while the node is overloaded or the caller exceeds its rate limit. */
export function shedRequests(app: FastifyInstance, budget: AdmissionBudget): void {
  app.addHook('onRoute', (route: RouteOptions) => {
    const rule = accessRule(route.config?.access)
    if (rule === undefined) return
    const check = (request: FastifyRequest, _reply: FastifyReply, done: (fault?: Error) => void): void => {
      if (budget.isOpen) {
        done()
        return
      }
      try {
        budget.check(rule.urgency, request.raw.headers, request.raw.socket)
        done()
      } catch (fault) {
        done(fault as Error)
      }
    }
    const others = route.onRequest === undefined ? [] : [route.onRequest].flat()
    route.onRequest = [...others, check]
  })
}
