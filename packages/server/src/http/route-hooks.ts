import type { RouteOptions } from 'fastify'

type HookName = 'onRequest' | 'preValidation' | 'onSend'
type Hook<Name extends HookName> = Exclude<NonNullable<RouteOptions[Name]>, readonly unknown[]>

/** Adds a hook to one route, before or after those that the route has already. */
export function addRouteHook<Name extends HookName>(
  route: RouteOptions,
  name: Name,
  hook: Hook<Name>,
  place: 'first' | 'last',
): void {
  const others = [route[name] ?? []].flat()
  Object.assign(route, { [name]: place === 'first' ? [hook, ...others] : [...others, hook] })
}
