import { errorCodes } from '@baton/protocol'
import { inCode, sectionNamed, tableRows } from './markdown.ts'

/** Groups of endpoints with common errors: the phrase that names the group, and the codes. */
export const sharedErrors = (protocol: string): string[][] =>
  tableRows(/^\*\*Errors\*\* that are not repeated below:\n\n((?:\|.*\n)+)/m.exec(protocol)?.[1] ?? '')

const isMeant: Record<string, (route: string, text: string) => boolean> = {
  'every request': () => true,
  'all but `/livez` and `/readyz`': (route) => !/livez|readyz/.test(route),
  'endpoints that need a certain role': (_, text) => !/Role: any|No token/.test(text),
  'all but `/livez`, `/metrics`, `/events` and `/audit/node`': (route) =>
    !/livez|metrics| \/events$|audit\/node/.test(route),
  '`POST /call-back`, endpoints of one task, all of `/subscriptions`, and `GET` of `/totals`, `/throughput`, `/scale`, `/instances`, `/metrics`, `/audit`, `/audit/node`':
    (route) =>
      /call-back|\{taskId\}|totals|GET \/throughput|scale|instances$|POST \/instances|subscriptions|metrics|audit/.test(
        route,
      ),
  'every `POST` and `PATCH`': (route) => /^(?:POST|PATCH) /.test(route),
  '`GET /pull`, every `POST`, `PATCH` and `DELETE`': (route) =>
    /^(?:POST|PATCH|DELETE) /.test(route) || route === 'GET /pull',
}

/** The codes in a line that lists errors, including unknown words in the form of a code. */
export function errorsIn(line: string): string[] {
  if (!/^Errors\b/.test(line)) return []
  return inCode(line).filter((name) => name.includes('_') || Object.hasOwn(errorCodes, name))
}

/** The codes that the protocol names for answers of a route as a whole. */
export function problemsNamedFor(protocol: string, route: string): string[] {
  const { text } = sectionNamed(protocol, route)
  const shared = sharedErrors(protocol).flatMap(([which = '', codes = '']) => {
    const meant = isMeant[which]
    if (meant === undefined) throw new Error(`which endpoints are "${which}"?`)
    return meant(route, text) ? inCode(codes) : []
  })
  const ofAllOrders = route.startsWith('POST /tasks/') ? sectionNamed(protocol, 'For operators').text : ''
  const lines = `${ofAllOrders}\n${text}`.split('\n').map((line) => line.replace(/ In `refused`:.*/, ''))
  return [...shared, ...lines.flatMap(errorsIn)]
}
