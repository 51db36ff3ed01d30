import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { type Access, hasEffect } from '../admission/admission.ts'
import type { Proxies } from '../admission/proxies.ts'
import { problemOf } from '../answers/problems.ts'
import type { Callers } from '../requests/callers.ts'
import type { AuditLog } from './audit-log.ts'

/** Changes that are part of the hand-off. All other changes are orders, which are audited. */
const handingOff: ReadonlySet<Access> = new Set(['producer', 'worker'])
const refusing: ReadonlySet<string> = new Set(['token_unknown', 'token_refused', 'token_limited'])
/** Task ids in the path may be long. */
const LONGEST_ACTION = 300

/**
 * Records every order and every refused token, on each route according to its access. Requests without a
 * token are not recorded: they are not an attempt to log in.
 */
export function auditRequests(
  app: FastifyInstance,
  { audit, callers, proxies }: { audit: AuditLog; callers: Callers; proxies: Proxies },
): void {
  const note = (request: FastifyRequest, reply: FastifyReply, isOrder: boolean): void => {
    const code = problemOf(reply)
    const isRefused = code !== undefined && refusing.has(code.code)
    if (!isOrder && !isRefused) return
    if (code?.code === 'token_missing') return
    const { raw } = request
    audit.note({
      kind: isRefused ? 'refused' : 'order',
      name: callers.nameOf(raw.headers),
      address: proxies.addressOf(raw.socket, raw.headers),
      action: `${raw.method} ${shortened(raw.url?.split('?', 1)[0] ?? '')}`,
      outcome: code?.code ?? 'done',
      detail: code?.detail ?? null,
    })
  }
  app.addHook('onRoute', (route: RouteOptions) => {
    const { access } = route.config ?? {}
    if (access === undefined || access === 'probe' || access === 'open') return
    const isOrder = hasEffect(access) && !handingOff.has(access)
    const others = route.onSend === undefined ? [] : [route.onSend].flat()
    route.onSend = [
      ...others,
      (
        request: FastifyRequest,
        reply: FastifyReply,
        payload: unknown,
        done: (error: null, same: unknown) => void,
      ) => {
        note(request, reply, isOrder)
        done(null, payload)
      },
    ] as NonNullable<RouteOptions['onSend']>
  })
}

function shortened(path: string): string {
  return path.length > LONGEST_ACTION ? `${path.slice(0, LONGEST_ACTION)}…` : path
}
