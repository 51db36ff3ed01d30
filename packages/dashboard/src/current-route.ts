import { signal } from '@preact/signals'
import { hrefOf, parseRoute, type Route } from './route.ts'

/** The current route. */
export const route = signal<Route>(parseRoute(location.hash))

addEventListener('hashchange', () => {
  route.value = parseRoute(location.hash)
})

/** Changes a filter. Replaces the history entry, so that each letter of a search does not add one. */
export function refine(to: Route): void {
  history.replaceState(null, '', hrefOf(to))
  route.value = to
}
