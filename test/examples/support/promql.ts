/** What a query asks for: a series, and the labels by which it chooses. */
export interface Requested {
  readonly query: string
  readonly series: string
  readonly labels: readonly { readonly name: string; readonly values: readonly string[] }[]
}

const SELECTOR = /\b(baton_[a-z_]+)(?:\{([^}]*)\})?/g
const MATCHER = /\b(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g

/** Every series of Baton's that a query names. Labels that Prometheus adds itself are left out. */
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

/** Labels by which a query groups, or that the text beside it names. */
export const groupedBy = (query: string): string[] =>
  [...query.matchAll(/\b(?:by|without)\s*\(([^)]*)\)/g)]
    .flatMap(([, names = '']) => names.split(','))
    .map((name) => name.trim())
    .filter((name) => !ADDED.has(name))

export const namedInLegend = (legend: string): string[] =>
  [...legend.matchAll(/\{\{\s*\$?(?:labels\.)?(\w+)\s*\}\}/g)]
    .map(([, name = '']) => name)
    .filter((name) => !ADDED.has(name) && name !== 'value')

/** By the scrape; `le` by histograms. */
const ADDED = new Set(['job', 'instance', 'le'])
