/** What a query selects: a metric, and the labels in its selector. */
export interface Requested {
  readonly query: string
  readonly series: string
  readonly labels: readonly { readonly name: string; readonly values: readonly string[] }[]
}

const SELECTOR = /\b(baton_[a-z_]+)(?:\{([^}]*)\})?/g
const MATCHER = /\b(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g

/** Every Baton metric that a query names. Labels that Prometheus adds itself are omitted. */
export function askedIn(query: string): Requested[] {
  return [...query.matchAll(SELECTOR)].map(([, series = '', matchers = '']) => ({
    query,
    series,
    labels: [...matchers.matchAll(MATCHER)]
      .map(([, name = '', operator, text = '']) => ({
        name,
        values: operator === '=~' || operator === '!~' ? text.split('|') : [text],
      }))
      .filter(({ name }) => !ADDED.has(name)),
  }))
}

/** Labels that a query groups by, or that its description names. */
export const groupedBy = (query: string): string[] =>
  [...query.matchAll(/\b(?:by|without)\s*\(([^)]*)\)/g)]
    .flatMap(([, names = '']) => names.split(','))
    .map((name) => name.trim())
    .filter((name) => !ADDED.has(name))

export const namedInLegend = (legend: string): string[] =>
  [...legend.matchAll(/\{\{\s*\$?(?:labels\.)?(\w+)\s*\}\}/g)]
    .map(([, name = '']) => name)
    .filter((name) => !ADDED.has(name) && name !== 'value')

/** Labels added by the scrape, and `le` of histograms. */
const ADDED = new Set(['job', 'instance', 'le'])
