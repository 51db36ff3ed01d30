import { signal } from '@preact/signals'
import { hrefOf, parseRoute, type Route } from './route.ts'

/** Where the page is now. */
export const route = signal<Route>(parseRoute(location.hash))

addEventListener('hashchange', () => {
  route.value = parseRoute(location.hash)
})

/** Changes a filter: the address follows, the way back does not grow by every letter of a search. */
export function refine(to: Route): void {
  history.replaceState(null, '', hrefOf(to))
  route.value = to
}
