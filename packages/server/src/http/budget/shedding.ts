import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { Access } from '../admission/admission.ts'
import type { AdmissionBudget } from './budget.ts'
import type { Urgency } from './overload.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** When the node is behind; what is not named here follows from who may call the route. */
    urgency?: Urgency
  }
}

/** Renews and settles, and orders of operators, who may be about to end the overload. */
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

/** Refuses requests, behind admission, while the node is behind or their caller sends too many. */
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
