import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { Access } from '../admission/admission.ts'
import type { AdmissionBudget } from './budget.ts'
import type { Urgency } from './overload.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** When an overloaded node sheds the request. The default depends on the access of the route. */
    urgency?: Urgency
  }
}

/**
 * The urgency of each access. Renews, settles and operator requests are urgent; the latter may resolve the
 * overload.
 */
const urgencies: Readonly<Record<Exclude<Access, 'probe'>, Urgency>> = {
  producer: 'call-back',
  open: 'view',
  anyone: 'view',
  view: 'view',
  overview: 'view',
  task: 'view',
  audit: 'view',
  worker: 'urgent',
  operator: 'urgent',
  fleet: 'urgent',
  seal: 'urgent',
  settings: 'urgent',
  subscriptions: 'urgent',
}

/** Refuses requests, after admission, while the node is overloaded or the caller exceeds its rate limit. */
export function shedRequests(app: FastifyInstance, budget: AdmissionBudget): void {
  app.addHook('onRoute', (route: RouteOptions) => {
    const { access, urgency } = route.config ?? {}
    if (access === undefined || access === 'probe') return
    const kind = urgency ?? urgencies[access]
    const check = (request: FastifyRequest, _reply: FastifyReply, done: (fault?: Error) => void): void => {
      if (budget.isOpen) {
        done()
        return
      }
      try {
        budget.check(kind, request.raw.headers, request.raw.socket)
        done()
      } catch (fault) {
        done(fault as Error)
      }
    }
    const others = route.onRequest === undefined ? [] : [route.onRequest].flat()
    route.onRequest = [...others, check]
  })
}
